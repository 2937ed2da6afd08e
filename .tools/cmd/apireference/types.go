package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// definition is a type of an API package.
type definition struct {
	name string
	doc  string
	// root is set for a kind.
	root   bool
	fields []field
	// under is the Go type that a type without fields has.
	under ast.Expr
	// values are those of an enumeration.
	values []value
}

type field struct {
	name, doc string
	// kind is the field's Go type, without pointers.
	kind     ast.Expr
	inline   bool
	required bool
	// notes are the field's default and rules.
	notes []string
}

type value struct{ text, doc string }

// load returns the types of a package, in the order of its files.
func load(folder string) ([]definition, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, fmt.Errorf("look for types: %w", err)
	}
	var all []definition
	values := map[string][]value{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("read types: %w", err)
		}
		for _, declared := range parsed.Decls {
			group, ok := declared.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range group.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					all = append(all, define(spec, group))
				case *ast.ValueSpec:
					enumerate(values, spec)
				}
			}
		}
	}
	for i := range all {
		all[i].values = values[all[i].name]
	}
	return all, nil
}

func define(spec *ast.TypeSpec, group *ast.GenDecl) definition {
	comment := spec.Doc
	if comment == nil {
		comment = group.Doc
	}
	d := definition{
		name: spec.Name.Name,
		doc:  prose(comment),
		root: slices.Contains(markers(comment), "kubebuilder:object:root=true"),
	}
	if body, ok := spec.Type.(*ast.StructType); ok {
		for _, f := range body.Fields.List {
			d.fields = append(d.fields, newField(f))
		}
	} else {
		d.under = spec.Type
	}
	return d
}

// enumerate adds the constants that have a type of their own and are strings.
func enumerate(values map[string][]value, spec *ast.ValueSpec) {
	kind, ok := spec.Type.(*ast.Ident)
	if !ok || kind.Name == "string" {
		return
	}
	for i, literal := range spec.Values {
		if basic, ok := literal.(*ast.BasicLit); ok && basic.Kind == token.STRING {
			if text, err := strconv.Unquote(basic.Value); err == nil {
				values[kind.Name] = append(values[kind.Name], value{text: text, doc: nameless(prose(spec.Doc), spec.Names[i].Name)})
			}
		}
	}
}

// nameless returns a sentence about a constant without its name, which users never see.
func nameless(doc, name string) string {
	if rest, ok := strings.CutPrefix(doc, name+" "); ok && rest != "" {
		return strings.ToUpper(rest[:1]) + rest[1:]
	}
	return doc
}

func newField(f *ast.Field) field {
	tag := ""
	if f.Tag != nil {
		tag, _ = strconv.Unquote(f.Tag.Value)
	}
	name, options, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
	all := markers(f.Doc)
	kind := f.Type
	if pointer, ok := kind.(*ast.StarExpr); ok {
		kind = pointer.X
	}
	return field{
		name:     name,
		doc:      prose(f.Doc),
		kind:     kind,
		notes:    rules(all),
		inline:   strings.Contains(options, "inline"),
		required: !strings.Contains(options, "omitempty") && !slices.Contains(all, "optional"),
	}
}

// prose returns a comment as one line, without its markers.
func prose(comment *ast.CommentGroup) string {
	var lines []string
	for line := range strings.Lines(comment.Text()) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "+") {
			lines = append(lines, line)
		}
	}
	return strings.Join(strings.Fields(strings.Join(lines, " ")), " ")
}

func markers(comment *ast.CommentGroup) []string {
	var found []string
	for line := range strings.Lines(comment.Text()) {
		if marker, ok := strings.CutPrefix(strings.TrimSpace(line), "+"); ok {
			found = append(found, marker)
		}
	}
	return found
}

var message = regexp.MustCompile(`message=("(?:[^"\\]|\\.)*")`)

// rules returns what the markers say of a field's values.
func rules(markers []string) []string {
	var found []string
	for _, marker := range markers {
		marker = strings.TrimPrefix(marker, "kubebuilder:")
		key, text, _ := strings.Cut(marker, "=")
		switch key {
		case "default":
			found = append(found, "Default: `"+strings.Trim(text, `"`)+"`.")
		case "validation:Enum":
			found = append(found, "One of `"+strings.ReplaceAll(text, ";", "`, `")+"`.")
		case "validation:Minimum":
			found = append(found, "At least "+text+".")
		case "validation:Maximum":
			found = append(found, "At most "+text+".")
		case "validation:MinLength", "validation:MinItems":
			if text == "0" {
				continue // says nothing
			}
			found = append(found, "At least "+text+" long.")
		case "validation:MaxLength", "validation:MaxItems":
			found = append(found, "At most "+text+" long.")
		case "validation:XValidation:rule":
			if match := message.FindStringSubmatch(text); match != nil {
				if said, err := strconv.Unquote(match[1]); err == nil {
					found = append(found, "Checked: "+said+".")
				}
			}
		}
	}
	return found
}
