package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"
)

// ReasonFaults are the reasons of conditions, waits and events that tests of the documentation cannot find, one line each:
// literals, and constants that no list of their package has, or that nothing explains. Lists are variables such as
//
//	var Reasons = []string{WaitRefused, WaitConflict}
func ReasonFaults(root fs.FS, m Module) ([]string, error) {
	packages := map[string]*reasons{}
	err := walkGo(root, m, func(name string, files *token.FileSet, file *ast.File) {
		folder := path.Dir(name)
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(folder, "core/testing/") || strings.HasPrefix(folder, "core/simulation/") {
			return
		}
		if packages[folder] == nil {
			packages[folder] = &reasons{listed: map[string]bool{}}
		}
		packages[folder].read(files, file, path.Base(m.Folder) == "api")
	})
	if err != nil {
		return nil, err
	}
	var faults []string
	for _, p := range packages {
		faults = append(faults, p.faults...)
		for _, c := range p.constants {
			if !p.listed[c.name] {
				faults = append(faults, fmt.Sprintf("%s: %s is in no list of reasons", c.at, c.name))
			}
			if !c.explained {
				faults = append(faults, fmt.Sprintf("%s: nothing explains %s", c.at, c.name))
			}
		}
	}
	slices.Sort(faults)
	return faults, nil
}

// reasons are those of a package.
type reasons struct {
	constants []constant
	listed    map[string]bool
	faults    []string
}

type constant struct {
	name      string
	at        token.Position
	explained bool
}

// read takes what the file adds. Modules of API types have other constants as well: only what stands beside a list counts.
func (r *reasons) read(files *token.FileSet, file *ast.File, api bool) {
	listsHere := false
	for v := range specs(file, token.VAR) {
		listsHere = r.readList(v) || listsHere
	}
	for v, doc := range specs(file, token.CONST) {
		name := v.Names[0].Name
		if len(v.Values) == 1 && isText(v.Values[0]) && (listsHere && ast.IsExported(name) || !api && isReason(name)) {
			r.constants = append(r.constants, constant{name, files.Position(v.Pos()), doc != nil})
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if hasLiteralReason(n) {
			r.faults = append(r.faults, fmt.Sprintf("%s: the reason is a literal, not a constant", files.Position(n.Pos())))
		}
		return true
	})
}

// specs returns the constants or variables of a file with their docs. The doc of a declaration is that of its only spec.
func specs(file *ast.File, kind token.Token) iter.Seq2[*ast.ValueSpec, *ast.CommentGroup] {
	return func(yield func(*ast.ValueSpec, *ast.CommentGroup) bool) {
		for _, declaration := range file.Decls {
			group, ok := declaration.(*ast.GenDecl)
			if !ok || group.Tok != kind {
				continue
			}
			for _, spec := range group.Specs {
				v := spec.(*ast.ValueSpec)
				doc := v.Doc
				if doc == nil && len(group.Specs) == 1 {
					doc = group.Doc
				}
				if !yield(v, doc) {
					return
				}
			}
		}
	}
}

func (r *reasons) readList(v *ast.ValueSpec) bool {
	if len(v.Values) != 1 || !slices.Contains([]string{"Reasons", "Messages", "Types", "ConditionTypes"}, v.Names[0].Name) {
		return false
	}
	list, ok := v.Values[0].(*ast.CompositeLit)
	if !ok {
		return false
	}
	for _, e := range list.Elts {
		if name, ok := e.(*ast.Ident); ok {
			r.listed[name.Name] = true
		}
	}
	return true
}

func isText(e ast.Expr) bool {
	text, ok := e.(*ast.BasicLit)
	return ok && text.Kind == token.STRING
}

// isReason reports whether a constant has the name of a reason.
func isReason(name string) bool {
	return slices.ContainsFunc([]string{"Reason", "Wait", "Event", "reason", "wait", "event"}, func(prefix string) bool {
		rest, ok := strings.CutPrefix(name, prefix)
		return ok && rest != "" && strings.ToUpper(rest[:1]) == rest[:1]
	})
}

// hasLiteralReason reports whether the node gives a condition, a wait or an event a reason that is no constant.
func hasLiteralReason(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		f, ok := n.Fun.(*ast.SelectorExpr)
		return ok && f.Sel.Name == "Wait" && len(n.Args) > 0 && isText(n.Args[0])
	case *ast.CompositeLit:
		return slices.Contains([]string{"Condition", "PodCondition", "Event", "Notice", "Summary", "Wait"}, typeName(n.Type)) &&
			slices.ContainsFunc(n.Elts, func(e ast.Expr) bool {
				field, ok := e.(*ast.KeyValueExpr)
				return ok && slices.Contains([]string{"Reason", "Succeeded", "Failed"}, typeName(field.Key)) && isText(field.Value)
			})
	case *ast.AssignStmt:
		for i, to := range n.Lhs {
			if f, ok := to.(*ast.SelectorExpr); ok && f.Sel.Name == "Reason" && i < len(n.Rhs) && isText(n.Rhs[i]) {
				return true
			}
		}
	}
	return false
}

// typeName is the name of a type or a field without its package.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}
