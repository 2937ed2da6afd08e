package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// refusals is how many negations a thousand words of messages may have. Errors say that something is not found or must not be empty:
// the libraries of Kubernetes have 10 (client-go), 18 (kubectl), 25 (apiserver) and 40 (controller-runtime).
const refusals = 30

// unexamined are the modules whose texts do not keep the measures yet: remove a module from the list when they do.
func unexamined() map[string]bool {
	all := map[string]bool{}
	for name := range strings.FieldsSeq(`
	`) {
		all[name] = true
	}
	return all
}

// verbatim are the texts of OpenKruise that clients compare word for word: they stay as they are.
func verbatim() []string {
	return []string{
		"should not be less than 1",
		"must be no more than 300 seconds",
		"does not support volume expansion",
		"may not be set when maxUnavailable is non-zero",
		"cannot be 0 when maxSurge is 0",
	}
}

// breachesOf returns the measures that the texts of a module do not keep, with the words.
func breachesOf(texts []string) map[string][]string {
	text := strings.Join(texts, "\n\n")
	for _, kept := range verbatim() {
		text = strings.ReplaceAll(text, kept, "")
	}
	all := measures()
	for i := range all {
		if strings.HasPrefix(all[i].name, "negations") {
			all[i].ceiling = refusals
		}
	}
	return exceeded(all, text)
}

// literals returns the texts of three and more words in the programs that users run, by module.
func literals(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	programs(t, func(module string, file *ast.File) { found[module] = append(found[module], literalsOf(file)...) })
	return found
}

// programs shows the files of the programs that users run, and their modules: no tests, and nothing that is generated.
func programs(t *testing.T, show func(module string, file *ast.File)) {
	t.Helper()
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(file, root+string(filepath.Separator)))
		if entry.IsDir() {
			switch name {
			case ".git", "bin", ".tools", "test", "core/testing", "core/simulation":
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(path.Base(name), "zz_") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		module, _, _ := strings.Cut(name, "/")
		show(module, parsed)
		return nil
	})
	require.NoError(t, err)
}

// literalsOf returns the texts of a file that people read: of three and more words, and no tag of a field.
func literalsOf(file *ast.File) []string {
	var all []string
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.Field:
			return node.Tag == nil
		case *ast.BasicLit:
			if text, err := strconv.Unquote(node.Value); node.Kind == token.STRING && err == nil && len(strings.Fields(text)) > 2 {
				all = append(all, text)
			}
		}
		return true
	})
	return all
}

// Users read messages, events, errors and the help of commands in a hurry: they keep to plain words like the pages.
func TestTextsOfProgramsAreInPlainWords(t *testing.T) {
	all, left := literals(t), unexamined()
	count := 0
	for name, texts := range all {
		count += len(texts)
		found := breachesOf(texts)
		if left[name] {
			assert.NotEmpty(t, found, "%s keeps the measures: remove it from the list", name)
			continue
		}
		assert.Empty(t, found, name)
	}
	for name := range left {
		assert.Contains(t, all, name, "there is no such module")
	}
	assert.Greater(t, count, 1500)
}

func TestLiteralsAreTextsOfThreeWords(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "a.go", "package a\n\nimport \"b\"\n\ntype c struct { D int `json:\"d\" a:\"b\" e:\"f\"` }\n"+
		"var e, f = \"two words\", \"pod %s is gone\"\n", 0)
	require.NoError(t, err)
	assert.Equal(t, []string{"pod %s is gone"}, literalsOf(file))
}
