package install

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"
)

// Programs can use the API types without the dependencies of the operators.
func TestAPITypesNeedNothingButAPITypes(t *testing.T) {
	const ours = "github.com/flotilla-project/flotilla/"
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	modules, err := filepath.Glob(filepath.Join(root, "*", "api", "go.mod"))
	require.NoError(t, err)
	require.NotEmpty(t, modules)
	for _, file := range modules {
		folder := filepath.Dir(file)
		name := filepath.ToSlash(strings.TrimPrefix(folder, root+string(filepath.Separator)))
		t.Run(name, func(t *testing.T) {
			for _, required := range directlyRequired(t, file) {
				assert.Contains(t, []string{"k8s.io/api", "k8s.io/apimachinery", ours + "core/api"}, required)
			}
			client := t.TempDir()
			write := func(name, text string) {
				require.NoError(t, os.WriteFile(filepath.Join(client, name), []byte(text), 0o600))
			}
			write("go.mod", fmt.Sprintf("module client\n\ngo 1.26.0\n\nrequire %[1]s%[2]s v0.1.0\n\nreplace (\n\t%[1]s%[2]s => %[3]s\n\t%[1]score/api => %[4]s\n)\n",
				ours, name, folder, filepath.Join(root, "core", "api")))
			sums, err := os.ReadFile(filepath.Join(folder, "go.sum"))
			require.NoError(t, err)
			write("go.sum", string(sums))
			write("main.go", "package main\n\nimport (\n"+imports(t, folder, ours+name)+")\n\nfunc main() {}\n")
			build := exec.CommandContext(t.Context(), "go", "build", "-mod=mod", "-o", os.DevNull, ".")
			build.Dir, build.Env = client, append(os.Environ(), "GOWORK=off")
			out, err := build.CombinedOutput()
			require.NoError(t, err, "%s", out)
			for _, required := range directlyRequired(t, filepath.Join(client, "go.mod")) {
				assert.Equal(t, ours+name, required)
			}
		})
	}
}

// imports returns the lines that import the packages of a module of API types, which are its folders.
func imports(t *testing.T, folder, path string) string {
	t.Helper()
	packages, err := filepath.Glob(filepath.Join(folder, "*", "doc.go"))
	require.NoError(t, err)
	require.NotEmpty(t, packages)
	var lines strings.Builder
	for _, p := range packages {
		fmt.Fprintf(&lines, "\t_ %q\n", path+"/"+filepath.Base(filepath.Dir(p)))
	}
	return lines.String()
}

// directlyRequired returns the modules that a go.mod file requires for its own packages.
func directlyRequired(t *testing.T, file string) []string {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	parsed, err := modfile.Parse(file, content, nil)
	require.NoError(t, err)
	var direct []string
	for _, r := range parsed.Require {
		if !r.Indirect {
			direct = append(direct, r.Mod.Path)
		}
	}
	return direct
}
