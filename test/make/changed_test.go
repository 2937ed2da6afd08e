package make

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// given is a workspace with a commit: b requires a, and c nothing.
func given(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	script, err := os.ReadFile("../run")
	require.NoError(t, err)
	files := map[string]string{
		"go.work":      "go 1.26\n\nuse (\n\t./a\n\t./a/api\n\t./b\n\t./c\n)\n",
		"a/go.mod":     "module github.com/flotilla-project/flotilla/a\n\nrequire github.com/flotilla-project/flotilla/a/api v0.1.0\n",
		"a/api/go.mod": "module github.com/flotilla-project/flotilla/a/api\n",
		"b/go.mod":     "module github.com/flotilla-project/flotilla/b\n\nrequire (\n\tgithub.com/flotilla-project/flotilla/a v0.1.0\n)\n",
		"c/go.mod":     "module github.com/flotilla-project/flotilla/c\n",
		"README.md":    "words\n",
		"test/run":     string(script),
	}
	for name, text := range files {
		write(t, root, name, text)
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "first"}} {
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", root}, args...)...).CombinedOutput() //nolint:gosec // a folder of the test
		require.NoError(t, err, string(out))
	}
	return root
}

func write(t *testing.T, root, name, text string) {
	t.Helper()
	file := filepath.Join(root, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o755)) //nolint:gosec // one of them is a script
}

func TestModulesThatDiffer(t *testing.T) {
	for file, want := range map[string]string{
		"a/api/types.go": "a a/api b", // a requires a/api, and b requires a
		"a/a.go":         "a b",
		"b/b_test.go":    "b",
		"c/go.mod":       "c",
		"README.md":      "a a/api b c test", // tests of every module may read it
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			root := given(t)
			write(t, root, file, "module github.com/flotilla-project/flotilla/c\n// changed\n")
			list := exec.CommandContext(t.Context(), "bash", filepath.Join(root, "test/run"), "differ", "HEAD") //nolint:gosec // a folder of the test
			out, err := list.CombinedOutput()
			require.NoError(t, err, string(out))
			assert.ElementsMatch(t, strings.Fields(want), strings.Fields(string(out)))
		})
	}
}
