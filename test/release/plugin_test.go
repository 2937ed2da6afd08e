package release_test

import (
	"crypto/sha256"
	"fmt"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-project/flotilla/test/release"
)

// krew downloads the archive, compares its hash and runs the binary that it finds there.
func TestThePluginIsReleased(t *testing.T) {
	w := given(t)
	w.write("go.work", "go 1.26.0\n\nuse (\n\t./core\n\t./kustomize\n\t./test\n)\n")
	w.write("kustomize/go.mod", "module github.com/flotilla-project/flotilla/kustomize\n\ngo 1.26.0\n")
	w.write("kustomize/cmd/flotilla/main.go", "package main\n\nvar release string\n\nfunc main() { println(release) }\n")
	w.write("kustomize/LICENSE", "free\n")
	w.write("kustomize/CHANGELOG.md", "# Changelog\n\n## Unreleased\n\n- A command.\n")
	w.commit()
	require.NoError(t, release.Prepare(w.root, w.plan(), time.Unix(0, 0)))
	w.commit()
	prepared, err := release.Prepared(t.Context(), w.root)
	require.NoError(t, err)
	o := release.Options{
		Root: w.root, Output: filepath.Join(t.TempDir(), "v1"), Platforms: []string{"linux/" + runtime.GOARCH},
		Machines: []string{runtime.GOOS + "/" + runtime.GOARCH, "windows/" + runtime.GOARCH},
	}
	require.NoError(t, release.Build(t.Context(), o, prepared))

	w.root = o.Output
	var manifest struct {
		Metadata struct{ Name string }
		Spec     struct {
			Version   string
			Platforms []struct {
				Selector         struct{ MatchLabels map[string]string }
				URI, SHA256, Bin string
			}
		}
	}
	require.NoError(t, yaml.UnmarshalStrict([]byte(w.read("plugin/flotilla.yaml")), &struct {
		APIVersion, Kind string
		Metadata, Spec   map[string]any
	}{}))
	require.NoError(t, yaml.Unmarshal([]byte(w.read("plugin/flotilla.yaml")), &manifest))
	assert.Equal(t, "flotilla", manifest.Metadata.Name)
	assert.Equal(t, "v0.1.0", manifest.Spec.Version)
	require.Len(t, manifest.Spec.Platforms, 2)
	platform := manifest.Spec.Platforms[0]
	assert.Equal(t, map[string]string{"os": runtime.GOOS, "arch": runtime.GOARCH}, platform.Selector.MatchLabels)
	name := "kubectl-flotilla-v0.1.0-" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz"
	assert.Equal(t, "https://github.com/flotilla-project/flotilla/releases/download/kustomize%2Fv0.1.0/"+name, platform.URI)
	assert.Equal(t, fmt.Sprintf("%x", sha256.Sum256([]byte(w.read("plugin/"+name)))), platform.SHA256)
	assert.Contains(t, w.read("SHA256SUMS"), "  plugin/"+name+"\n")

	unpacked := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "tar", "-xzf", filepath.Join(o.Output, "plugin", name), "-C", unpacked).CombinedOutput()
	require.NoError(t, err, string(out))
	assert.FileExists(t, filepath.Join(unpacked, "LICENSE"))
	out, err = exec.CommandContext(t.Context(), filepath.Join(unpacked, platform.Bin)).CombinedOutput()
	require.NoError(t, err)
	assert.Equal(t, "v0.1.0\n", string(out))

	windows := manifest.Spec.Platforms[1]
	assert.Equal(t, "windows", windows.Selector.MatchLabels["os"])
	out, err = exec.CommandContext(t.Context(), "tar", "-tzf", filepath.Join(o.Output, "plugin", path.Base(windows.URI))).CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Equal(t, "kubectl-flotilla.exe", windows.Bin, "Windows runs no file without this ending")
	assert.Equal(t, windows.Bin+"\nLICENSE\n", string(out))
}
