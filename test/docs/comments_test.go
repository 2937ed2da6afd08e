package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// exceptions is how many negations a thousand words of comments may have. Comments name the cases that a rule leaves out.
const exceptions = 25

// named is the name with which a comment about a declaration begins.
var named = regexp.MustCompile(`^\w+`)

// commentsOf returns the comments of a file that people read, without the names of what they are about.
func commentsOf(file *ast.File) []string {
	var all []string
	for _, group := range file.Comments {
		if text := group.Text(); text != "" { // directives have none
			all = append(all, named.ReplaceAllString(text, ""))
		}
	}
	return all
}

// Who reads the code has as little time as who reads a page: comments keep to plain words, too.
func TestCommentsAreInPlainWords(t *testing.T) {
	all, count := map[string][]string{}, 0
	programs(t, func(module string, file *ast.File) {
		texts := commentsOf(file)
		all[module] = append(all[module], texts...)
		count += len(texts)
	})
	measured := measures()
	for i := range measured {
		if strings.HasPrefix(measured[i].name, "negations") {
			measured[i].ceiling = exceptions
		}
	}
	for module, texts := range all {
		assert.Empty(t, exceeded(measured, strings.Join(texts, "\n\n")), module)
	}
	assert.Greater(t, count, 5000)
}

func TestCommentsBeginWithNames(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "a.go", "package a\n\n// told is a map.\nvar told int //nolint:b\n", parser.ParseComments)
	require.NoError(t, err)
	assert.Equal(t, []string{" is a map.\n"}, commentsOf(file))
}
