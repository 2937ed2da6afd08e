package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// repository makes a repository with a module, a page and rows, each with its test and the line that takes the place of the fix.
func repository(t *testing.T, fixes map[string]string) string {
	t.Helper()
	root := t.TempDir()
	write := func(name, text string) {
		name = filepath.Join(root, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o750))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	write("m/go.mod", "module example.com/m\n\ngo 1.26\n")
	write("m/p/p.go", "package p\n\nfunc next(n int) int {\n\treturn n + 1\n}\n")
	var table, list, tests strings.Builder
	for name, line := range fixes {
		test := "TestNextOf" + name
		table.WriteString("| problem " + name + ": a/b#1, a/b#2 | behavior | `m/p/p_test.go:" + test + "` |\n")
		list.WriteString("- name: " + name + "\n  problem: problem " + name + "\n  test: m/p/p_test.go:" + test + "\n")
		tests.WriteString("\nfunc " + test + "(t *testing.T) {\n\tif next(1) != 2 || \"" + name + "\" == \"Wrong\" {\n\t\tt.Error(\"wrong\")\n\t}\n}\n")
		write(testdata+"/"+name+".patch", "--- a/m/p/p.go\n+++ b/m/p/p.go\n@@ -3,3 +3,3 @@\n func next(n int) int {\n-\treturn n + 1\n+\t"+line+"\n }\n")
	}
	write("m/p/p_test.go", "package p\n\nimport \"testing\"\n"+tests.String())
	write(page, table.String())
	write(testdata+"/rows.yaml", list.String())
	return root
}

func TestVerdicts(t *testing.T) {
	root := repository(t, map[string]string{
		"Held": "return n", "Idle": "return 1 + n", "Broken": "return m", "Panicking": `panic("n")`, "Wrong": "return n",
	})
	before, err := os.ReadFile(filepath.Join(root, "m/p/p.go"))
	require.NoError(t, err)
	for name, want := range map[string]string{
		"Held":      "passes with the fix, fails without it",
		"Idle":      "without the fix: the test has result PASS",
		"Broken":    "without the fix: the test does not compile",
		"Panicking": "without the fix: the test has result panic",
		"Wrong":     "with the fix: the test has result FAIL",
	} {
		out, err := reproduce(t, root, name)
		assert.Equal(t, name == "Held", err == nil, "%s: %v", name, err)
		assert.Regexp(t, `(?m)^\| `+name+` \| a/b#1, a/b#2 \| m/p/p_test.go:TestNextOf`+name+` \| \d+ s \| `+want+` \|$`, out)
	}
	after, err := os.ReadFile(filepath.Join(root, "m/p/p.go"))
	require.NoError(t, err)
	assert.Equal(t, string(before), string(after), "the files of the user stay as they are")
}

func TestTheFailureIsShownOfRowsThatAreNamed(t *testing.T) {
	root := repository(t, map[string]string{"Held": "return n"})
	out, err := reproduce(t, root, "Held")
	require.NoError(t, err)
	assert.Contains(t, out, "p_test.go:7: wrong")
	out, err = reproduce(t, root)
	require.NoError(t, err)
	assert.NotContains(t, out, "p_test.go:7: wrong")
}

func TestRowsThatAreNotAsThePageHasThem(t *testing.T) {
	root := repository(t, map[string]string{"Held": "return n"})
	_, err := reproduce(t, root, "Hold")
	require.EqualError(t, err, "there is no row Hold: use one of Held")

	require.NoError(t, os.WriteFile(filepath.Join(root, "m/p/p.go"), []byte("package p\n\nfunc next(n int) int { return 1 + n }\n"), 0o600))
	out, err := reproduce(t, root)
	require.EqualError(t, err, "1 of 1 rows do not reproduce their problem")
	assert.Contains(t, out, "| the patch does not apply: make it again for the current code |")

	require.NoError(t, os.WriteFile(filepath.Join(root, page), []byte("| problem Held | behavior | `m/p/p_test.go:TestOther` |\n"), 0o600))
	_, err = reproduce(t, root)
	require.EqualError(t, err, `row Held: the page has no row "problem Held" with test m/p/p_test.go:TestNextOfHeld`)
}

func reproduce(t *testing.T, root string, names ...string) (out string, err error) {
	t.Helper()
	var text strings.Builder
	err = run(t.Context(), append([]string{"--root", root}, names...), &text)
	return text.String(), err
}
