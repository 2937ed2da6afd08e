package release_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/render"

	"github.com/flotilla-project/flotilla/kustomize/release"
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
	require.NoError(t, yaml.UnmarshalStrict([]byte(w.read("kustomize-v0.1.0/flotilla.yaml")), &struct {
		APIVersion, Kind string
		Metadata, Spec   map[string]any
	}{}))
	require.NoError(t, yaml.Unmarshal([]byte(w.read("kustomize-v0.1.0/flotilla.yaml")), &manifest))
	assert.Equal(t, "flotilla", manifest.Metadata.Name)
	assert.Equal(t, "v0.1.0", manifest.Spec.Version)
	require.Len(t, manifest.Spec.Platforms, 2)
	platform := manifest.Spec.Platforms[0]
	assert.Equal(t, map[string]string{"os": runtime.GOOS, "arch": runtime.GOARCH}, platform.Selector.MatchLabels)
	name := "kubectl-flotilla-v0.1.0-" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz"
	assert.Equal(t, "https://github.com/flotilla-project/flotilla/releases/download/kustomize%2Fv0.1.0/"+name, platform.URI)
	assert.Equal(t, fmt.Sprintf("%x", sha256.Sum256([]byte(w.read("kustomize-v0.1.0/"+name)))), platform.SHA256)
	w.checkSums("kustomize-v0.1.0", "flotilla-0.1.0.tgz", "flotilla-base-0.1.0.tgz", "flotilla-crds-0.1.0.tgz", "flotilla.yaml", "kubectl-flotilla-v0.1.0-"+runtime.GOOS+"_"+runtime.GOARCH+".spdx.json", name,
		"kubectl-flotilla-v0.1.0-windows_"+runtime.GOARCH+".spdx.json", "kubectl-flotilla-v0.1.0-windows_"+runtime.GOARCH+".tar.gz")

	unpacked := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "tar", "-xzf", filepath.Join(o.Output, "kustomize-v0.1.0", name), "-C", unpacked).CombinedOutput()
	require.NoError(t, err, string(out))
	assert.FileExists(t, filepath.Join(unpacked, "LICENSE"))
	out, err = exec.CommandContext(t.Context(), filepath.Join(unpacked, platform.Bin)).CombinedOutput()
	require.NoError(t, err)
	assert.Equal(t, "v0.1.0\n", string(out))

	script := filepath.Join(unpacked, "kubectl_complete-flotilla")
	complete := exec.CommandContext(t.Context(), script, "rollout", "sta")
	complete.Env = append(os.Environ(), "PATH="+stubbedKubectl(t)+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err = complete.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Equal(t, "flotilla __complete rollout sta\n", string(out), "kubectl runs the plugin, which completes the arguments")

	windows := manifest.Spec.Platforms[1]
	assert.Equal(t, "windows", windows.Selector.MatchLabels["os"])
	out, err = exec.CommandContext(t.Context(), "tar", "-tzf", filepath.Join(o.Output, "kustomize-v0.1.0", path.Base(windows.URI))).CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Equal(t, "kubectl-flotilla.exe", windows.Bin, "Windows runs no file without this ending")
	assert.Equal(t, windows.Bin+"\nLICENSE\n", string(out))
}

// stubbedKubectl returns a folder with a kubectl that prints its arguments.
func stubbedKubectl(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "kubectl"), []byte("#!/bin/sh\necho \"$@\"\n"), 0o700)) //nolint:gosec // a program
	return folder
}

// A release of the command names the images of all features: those that are built with it, and those that the registry has of earlier
// releases.
func TestTheCommandKnowsAllImages(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	w := given(t)
	w.write("go.work", "go 1.26.0\n\nuse (\n\t./cloneset\n\t./kustomize\n\t./test\n)\n")
	w.write("cloneset/go.mod", "module github.com/flotilla-project/flotilla/cloneset\n\ngo 1.26.0\n")
	w.write("cloneset/cmd/manager/main.go", program)
	w.write("cloneset/CHANGELOG.md", "# Changelog\n\n## Unreleased\n\n## v0.2.0 (2026-11-23)\n\n- CloneSets.\n")
	w.write("kustomize/go.mod", "module github.com/flotilla-project/flotilla/kustomize\n\ngo 1.26.0\n")
	w.write("kustomize/cmd/flotilla/main.go", "package main\n\nimport \"github.com/flotilla-project/flotilla/kustomize/catalog\"\n\nfunc main() { print(catalog.Registry, \" \", catalog.Digests) }\n")
	w.write("kustomize/catalog/catalog.go", "package catalog\n\nvar Registry, Digests string\n")
	w.write("kustomize/LICENSE", "free\n")
	w.write("kustomize/CHANGELOG.md", "# Changelog\n\n## Unreleased\n\n## v0.2.0 (2026-11-23)\n\n- A command.\n")
	host := strings.TrimPrefix(server.URL, "http://")
	o := release.Options{
		Root: w.root, Output: filepath.Join(t.TempDir(), "v1"), Registry: host, Push: true,
		Platforms: []string{"linux/" + runtime.GOARCH}, Machines: []string{runtime.GOOS + "/" + runtime.GOARCH},
	}
	releases := []release.Release{{Module: "cloneset", To: "v0.2.0"}, {Module: "kustomize", To: "v0.2.0"}}
	require.ErrorContains(t, release.Build(t.Context(), o, releases), "build kustomize/v0.2.0: read the digest of "+host+"/flotilla/budget-manager:")

	earlier, err := catalog.Features()
	require.NoError(t, err)
	want := map[string]string{}
	for _, feature := range earlier {
		for _, name := range feature.Images {
			want[name] = pushed(t, host+"/"+name+":"+feature.Version)
		}
	}
	o.Output = filepath.Join(t.TempDir(), "v2")
	require.NoError(t, release.Build(t.Context(), o, releases))
	at, err := layout.ImageIndexFromPath(filepath.Join(o.Output, "images"))
	require.NoError(t, err)
	manifest, err := at.IndexManifest()
	require.NoError(t, err)
	want["flotilla/cloneset-manager"] = manifest.Manifests[0].Digest.String()

	w.root = o.Output
	found := map[string]string{}
	for _, image := range regexp.MustCompile(`image: (\S+)@(\S+)`).FindAllStringSubmatch(w.read("kustomize-v0.2.0/install-all.yaml"), -1) {
		found[strings.TrimPrefix(image[1], host+"/")] = image[2]
	}
	assert.Equal(t, want, found)
	assertOverlays(t, filepath.Join(o.Output, "kustomize-v0.2.0", "overlays-v0.2.0.tar.gz"), want)
	out, err := exec.CommandContext(t.Context(), filepath.Join(o.Root, "bin", "plugin", runtime.GOOS+"_"+runtime.GOARCH, "kubectl-flotilla")).CombinedOutput()
	require.NoError(t, err)
	linked, pins, _ := strings.Cut(string(out), " ")
	assert.Equal(t, host, linked)
	known := map[string]string{}
	for pin := range strings.SplitSeq(pins, ",") {
		name, digest, _ := strings.Cut(pin, "=")
		known[name] = digest
	}
	assert.Equal(t, want, known)
}

// Overlays are used as in a checkout, with the images of the release.
func assertOverlays(t *testing.T, archive string, want map[string]string) {
	t.Helper()
	unpacked := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "tar", "-xzf", archive, "-C", unpacked).CombinedOutput()
	require.NoError(t, err, string(out))
	folders, err := render.Folders(os.DirFS(unpacked))
	require.NoError(t, err)
	tree, err := render.NewTree(folders)
	require.NoError(t, err)
	for _, overlay := range []string{"all", "cloneset"} {
		var renderer render.Renderer
		manifests, err := renderer.Build(tree, "kustomize/overlays/"+overlay)
		require.NoError(t, err)
		found := regexp.MustCompile(`image: \S+/(flotilla/\S+)@(\S+)`).FindAllStringSubmatch(string(manifests), -1)
		require.NotEmpty(t, found)
		for _, image := range found {
			assert.Equal(t, want[image[1]], image[2])
		}
		assert.NotContains(t, string(manifests), "image: flotilla/")
	}
}

// pushed pushes an image, and returns its digest.
func pushed(t *testing.T, reference string) string {
	t.Helper()
	tag, err := name.NewTag(reference)
	require.NoError(t, err)
	image, err := random.Image(16, 1)
	require.NoError(t, err)
	require.NoError(t, remote.Write(tag, image, remote.WithContext(t.Context())))
	digest, err := image.Digest()
	require.NoError(t, err)
	return digest.String()
}
