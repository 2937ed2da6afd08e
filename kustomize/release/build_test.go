package release_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/spdx/tools-golang/json"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/kustomize/release"
	"github.com/flotilla-project/flotilla/kustomize/release/overlays"
)

const program = `package main

import "fmt"

var version string

func main() { fmt.Println("version", version) }
`

// The manager is a small one; what installs it is rendered from the overlay of this work tree.
func TestBuild(t *testing.T) {
	w := given(t)
	w.write("go.work", "go 1.26.0\n\nuse (\n\t./cloneset\n\t./core\n\t./test\n)\n")
	w.write("cloneset/go.mod", "module github.com/flotilla-project/flotilla/cloneset\n\ngo 1.26.0\n")
	w.write("cloneset/cmd/manager/main.go", program)
	w.write("cloneset/CHANGELOG.md", "# Changelog\n\n## Unreleased\n\n- CloneSets.\n")
	w.commit()
	date := time.Date(2026, 11, 23, 1, 2, 3, 0, time.UTC)
	require.NoError(t, release.Prepare(w.root, w.plan(), date))
	w.commit()
	prepared, err := release.Prepared(t.Context(), w.root)
	require.NoError(t, err)
	o := release.Options{
		Root: w.root, Output: filepath.Join(t.TempDir(), "v1"), Registry: "registry.example.com/team",
		Platforms: []string{"linux/" + runtime.GOARCH}, Revision: "c0ffee", Date: date,
	}
	require.NoError(t, release.Build(t.Context(), o, prepared))

	w.root = o.Output
	assert.Equal(t, "## v0.1.0 (2026-11-23)\n\n- CloneSets.\n", w.read("notes/cloneset-v0.1.0.md"))
	assert.FileExists(t, filepath.Join(o.Output, "notes", "core-v0.1.0.md"), "a library has notes only")

	at, err := layout.FromPath(filepath.Join(o.Output, "images"))
	require.NoError(t, err)
	index, err := at.ImageIndex()
	require.NoError(t, err)
	manifest, err := index.IndexManifest()
	require.NoError(t, err)
	require.Len(t, manifest.Manifests, 3)
	for i, name := range []string{"cloneset-manager:v0.1.0", "charts/cloneset:0.1.0", "charts/cloneset-crds:0.1.0"} {
		assert.Equal(t, "flotilla/"+name, manifest.Manifests[i].Annotations["org.opencontainers.image.ref.name"])
	}

	objects, err := overlays.Objects([]byte(w.read("cloneset-v0.1.0/install-cloneset.yaml")))
	require.NoError(t, err)
	assert.NotEmpty(t, objects)
	pinned := regexp.MustCompile(`image: (\S*)`).FindAllStringSubmatch(w.read("cloneset-v0.1.0/install-cloneset.yaml"), -1)
	require.NotEmpty(t, pinned)
	for _, image := range pinned {
		assert.Equal(t, "registry.example.com/team/flotilla/cloneset-manager@"+manifest.Manifests[0].Digest.String(), image[1])
	}

	bill, err := json.Read(strings.NewReader(w.read("cloneset-v0.1.0/cloneset-manager-v0.1.0-linux_" + runtime.GOARCH + ".spdx.json")))
	require.NoError(t, err)
	require.NotEmpty(t, bill.Packages)
	assert.Equal(t, "github.com/flotilla-project/flotilla/cloneset", bill.Packages[0].PackageName)
	assert.Equal(t, "v0.1.0", bill.Packages[0].PackageVersion)
	assert.Equal(t, runtime.Version(), bill.Packages[1].PackageVersion)

	assert.Equal(t, "flotilla/cloneset-manager@"+manifest.Manifests[0].Digest.String()+
		" cloneset-v0.1.0/cloneset-manager-v0.1.0-linux_"+runtime.GOARCH+".spdx.json\n", w.read("sboms"))

	w.checkSums("cloneset-v0.1.0", "cloneset-0.1.0.tgz", "cloneset-crds-0.1.0.tgz", "cloneset-manager-v0.1.0-linux_"+runtime.GOARCH+".spdx.json", "install-cloneset.yaml")
	assert.NoDirExists(t, filepath.Join(o.Output, "core-v0.1.0"), "a library has no files")

	assert.EqualError(t, release.Build(t.Context(), o, prepared), "build the release: folder "+o.Output+" exists")
}

// checkSums checks the files of a release as a user does who has downloaded them all: they have no folders.
func (w tree) checkSums(folder string, files ...string) {
	w.t.Helper()
	var sums []string
	for line := range strings.Lines(w.read(folder + "/SHA256SUMS")) {
		_, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		sums = append(sums, name)
	}
	assert.Equal(w.t, files, sums)
	downloaded := w.t.TempDir()
	for _, name := range append(files, "SHA256SUMS") {
		require.NoError(w.t, os.WriteFile(filepath.Join(downloaded, name), []byte(w.read(folder+"/"+name)), 0o600))
	}
	check := exec.CommandContext(w.t.Context(), "sha256sum", "--check", "--quiet", "SHA256SUMS")
	check.Dir = downloaded
	out, err := check.CombinedOutput()
	require.NoError(w.t, err, string(out))
}

// Each image of a platform has an SBOM of its own.
func TestImagesOfPlatformsHaveSBOMs(t *testing.T) {
	w := given(t)
	w.write("go.work", "go 1.26.0\n\nuse (\n\t./cloneset\n\t./test\n)\n")
	w.write("cloneset/go.mod", "module github.com/flotilla-project/flotilla/cloneset\n\ngo 1.26.0\n")
	w.write("cloneset/cmd/manager/main.go", program)
	w.write("cloneset/CHANGELOG.md", "# Changelog\n\n## Unreleased\n\n## v0.1.0 (2026-11-23)\n\n- CloneSets.\n")
	o := release.Options{Root: w.root, Output: filepath.Join(t.TempDir(), "v1"), Platforms: []string{"linux/amd64", "linux/arm64"}}
	require.NoError(t, release.Build(t.Context(), o, []release.Release{{Module: "cloneset", To: "v0.1.0"}}))

	w.root = o.Output
	at, err := layout.ImageIndexFromPath(filepath.Join(o.Output, "images"))
	require.NoError(t, err)
	namespaces := map[string]bool{}
	for line := range strings.Lines(w.read("sboms")) {
		reference, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		_, digest, _ := strings.Cut(reference, "@")
		hash, err := v1.NewHash(digest)
		require.NoError(t, err)
		image, err := indexOf(t, at).Image(hash)
		require.NoError(t, err)
		config, err := image.ConfigFile()
		require.NoError(t, err)
		assert.Contains(t, file, "-linux_"+config.Architecture+".spdx.json")
		bill, err := json.Read(strings.NewReader(w.read(file)))
		require.NoError(t, err)
		namespaces[bill.DocumentNamespace] = true
	}
	assert.Len(t, namespaces, 2)
}

// indexOf returns the first index of an OCI layout, which is that of an image.
func indexOf(t *testing.T, at v1.ImageIndex) v1.ImageIndex {
	t.Helper()
	manifest, err := at.IndexManifest()
	require.NoError(t, err)
	require.NotEmpty(t, manifest.Manifests)
	index, err := at.ImageIndex(manifest.Manifests[0].Digest)
	require.NoError(t, err)
	return index
}
