package make

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An eighth feature is a folder and its lines in go.work. The go.mod files that need lines of it are named, and all lists are
// generated: the command installs the feature without a line of code that knows it.
func TestANewFeatureIsAFolder(t *testing.T) {
	w := scratch(t)
	w.addFeature()

	for fault := range strings.Lines(w.fails(".", w.tool("modcheck"), ".")) {
		assert.Regexp(t, `^(kustomize|kustomize/release|test|test/charts): .*, add to (kustomize|kustomize/release|test|test/charts)/go\.mod: `, fault)
	}
	w.addRequirements()
	w.runs("beacon/api", "go", "generate", "./...")
	w.runs(".", w.tool("manifests"), ".")
	w.runs(".", w.tool("apireference"), ".")

	assert.Empty(t, w.runs(".", w.tool("modcheck"), "."))
	w.runs("beacon", "go", "build", "-o", w.tool("beacon-manager"), "./cmd/manager")
	w.runs("kustomize", "go", "build", "-o", w.tool("flotilla"), "./cmd/flotilla")
	w.runs("test", "go", "list", "-deps", "./cmd/demo")
	for _, chosen := range []string{"beacon", "all"} {
		manifests := w.runs(".", w.tool("flotilla"), "install", chosen, "--dry-run=client", "--registry", "registry.example")
		for _, want := range []string{"  name: beacons.apps.kruise.io\n", "  name: beacon-mutating\n", "        image: registry.example/flotilla/beacon-manager:v0.1.0\n"} {
			assert.Contains(t, manifests, want, "install %s", chosen)
		}
	}
	manifests := w.runs(".", w.tool("flotilla"), "install", "beacon", "--dry-run=client", "--registry", "registry.example", "--feature-gates", "BeaconLight=false")
	assert.Contains(t, manifests, "--feature-gates=BeaconLight=false\n")
	assert.Contains(t, w.runs(".", w.tool("beacon-manager"), "--help"), "BeaconLight (default true): beacons shine\n")
	assert.Contains(t, w.read("kustomize/overlays/all/kustomization.yaml"), "\n- ../../../beacon/config/default\n")
	assert.Contains(t, w.read("kustomize/overlays/minimal/kustomization.yaml"), "\n- ../../../beacon/config/default\n")
	assert.Contains(t, w.read("README.md"), "| [`beacon`](beacon) | Beacon: an eighth feature |\n")
	assert.Contains(t, w.read("docs/README.md"), "[beacon](api/beacon.md), ")
	assert.Contains(t, w.read("docs/install/install.md"), "`beacon`, ")
	assert.Contains(t, w.read("docs/api/beacon.md"), "observedGeneration")
}

// worktree is a copy of the repository.
type worktree struct {
	t    *testing.T
	root string
}

// scratch copies the repository, without what is built in it, and builds the tools of make generate.
func scratch(t *testing.T) worktree {
	t.Helper()
	w := worktree{t: t, root: t.TempDir()}
	const from = "../.."
	require.NoError(t, filepath.WalkDir(from, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "bin" || entry.Name() == ".git") {
			return fs.SkipDir
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		path, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(name)
		write(t, w.root, path, string(content))
		return err
	}))
	w.runs(".tools", "go", "build", "-o", "bin/", "tool", "./cmd/...")
	return w
}

// addFeature adds feature beacon. Its modules have the requirements of another workload.
func (w worktree) addFeature() {
	w.t.Helper()
	require.NoError(w.t, os.CopyFS(filepath.Join(w.root, "beacon"), os.DirFS("testdata/beacon")))
	for _, file := range []string{"go.mod", "go.sum", "Makefile", "api/go.mod", "api/go.sum", "api/Makefile"} {
		write(w.t, w.root, "beacon/"+file, strings.ReplaceAll(w.read("cloneset/"+file), "cloneset", "beacon"))
	}
	write(w.t, w.root, "beacon/config/crd/beacons.yaml", "")
	write(w.t, w.root, "go.work", strings.Replace(w.read("go.work"), "use (\n", "use (\n\t./beacon\n\t./beacon/api\n", 1))
}

// addRequirements adds the lines that modcheck asks for.
func (w worktree) addRequirements() {
	w.t.Helper()
	const module = "github.com/flotilla-project/flotilla/beacon"
	for folder, up := range map[string]string{"kustomize": "..", "kustomize/release": "../..", "test": "..", "test/charts": "../.."} {
		w.runs(folder, "go", "mod", "edit", "-require="+module+"@v0.1.0", "-replace="+module+"="+up+"/beacon", "-replace="+module+"/api="+up+"/beacon/api")
	}
}

func (w worktree) tool(name string) string { return filepath.Join(w.root, ".tools", "bin", name) }

func (w worktree) read(name string) string {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.root, filepath.FromSlash(name)))
	require.NoError(w.t, err)
	return string(text)
}

// runs runs a command in a folder, each module on its own, and returns what it prints. A machine that has built nothing yet
// downloads the modules of the tools.
func (w worktree) runs(folder string, args ...string) string {
	w.t.Helper()
	out, err := w.command(folder, args...)
	require.NoError(w.t, err, "%s: %s", strings.Join(args, " "), out)
	return out
}

// fails runs a command that must fail.
func (w worktree) fails(folder string, args ...string) string {
	w.t.Helper()
	out, err := w.command(folder, args...)
	require.Error(w.t, err, out)
	return out
}

func (w worktree) command(folder string, args ...string) (string, error) {
	w.t.Helper()
	command := exec.CommandContext(w.t.Context(), args[0], args[1:]...) //nolint:gosec // programs of the repository
	command.Dir = filepath.Join(w.root, folder)
	command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod -buildvcs=false")
	out, err := command.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("run %s: %w", args[0], err)
	}
	return string(out), err
}
