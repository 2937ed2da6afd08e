package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// source is a Go file.
type source struct {
	*ast.File

	// path is relative to the root of the repository.
	path string
}

// sources returns the Go files of the repository that are neither tests nor generated. They are parsed once for all tests.
func sources(t *testing.T) []source {
	t.Helper()
	found, err := parsed()
	require.NoError(t, err)
	require.NotEmpty(t, found)
	return found
}

var parsed = sync.OnceValues(func() (found []source, err error) {
	files := token.NewFileSet()
	err = filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if slices.Contains([]string{"test", "testing", "testdata", "simulate", "simulation", "bin"}, name) || strings.HasPrefix(name, ".") && name != ".." {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "zz_") {
			return nil
		}
		tree, err := parser.ParseFile(files, file, nil, parser.ParseComments|parser.SkipObjectResolution)
		found = append(found, source{tree, filepath.ToSlash(strings.TrimPrefix(file, root+string(filepath.Separator)))})
		return err
	})
	return found, err
})

// gap stands for the parts of a text that only a running program knows.
const gap = "…"

var (
	verb    = regexp.MustCompile(`%(\[\d+\])?[-+#0]*\d*(\.\d+)?[a-zA-Z]`)
	gaps    = regexp.MustCompile(gap + `(/?` + gap + `)+`) // such as that of NAMESPACE/NAME
	message = regexp.MustCompile(`message="((?:[^"\\]|\\.)*)"`)
)

// texts returns what the code of a file can write: string literals, those that are joined with + as one text, and the
// messages of validation markers.
func (s source) texts() []string {
	var found []string
	ast.Inspect(s.File, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.BinaryExpr:
			if node.Op == token.ADD {
				found = append(found, gaps.ReplaceAllString(plain(node), gap))
			}
		case *ast.BasicLit:
			if node.Kind == token.STRING {
				found = append(found, gaps.ReplaceAllString(plain(node), gap))
			}
		}
		return true
	})
	for _, group := range s.Comments {
		for _, match := range message.FindAllStringSubmatch(group.Text(), -1) {
			found = append(found, match[1])
		}
		for _, line := range group.List { // markers are left out of the text of a comment
			for _, match := range message.FindAllStringSubmatch(line.Text, -1) {
				found = append(found, match[1])
			}
		}
	}
	return found
}

// plain returns the text of an expression, with a gap for each part and each verb that is not literal.
func plain(expression ast.Expr) string {
	switch node := expression.(type) {
	case *ast.BinaryExpr:
		return plain(node.X) + plain(node.Y)
	case *ast.BasicLit:
		text, err := strconv.Unquote(node.Value)
		if err != nil {
			return node.Value
		}
		return verb.ReplaceAllString(strings.ReplaceAll(text, "%%", "%"), gap)
	}
	return gap
}

// constants returns the string constants of files that a rule selects, by name.
func constants(all []source, selected func(source) bool) map[string][]string {
	found := map[string][]string{}
	for _, file := range all {
		if !selected(file) {
			continue
		}
		for _, declaration := range file.Decls {
			group, ok := declaration.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			for _, spec := range group.Specs {
				values := spec.(*ast.ValueSpec)
				for i, value := range values.Values {
					if literal, ok := value.(*ast.BasicLit); ok && literal.Kind == token.STRING {
						found[values.Names[i].Name] = append(found[values.Names[i].Name], plain(literal))
					}
				}
			}
		}
	}
	return found
}
