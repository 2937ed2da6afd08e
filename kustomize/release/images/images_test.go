package images_test

import (
	"archive/tar"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/kustomize/release/images"
)

const program = `package main

import "fmt"

var version string

func main() { fmt.Println("version", version) }
`

// workspace returns a work tree with a manager in fleet, a manager, an agent and a small program in daemon, and a library without
// either.
func workspace(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(root, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write("go.work", "go 1.26.0\n\nuse (\n\t./fleet\n\t./daemon\n\t./library\n)\n")
	for _, module := range []string{"fleet", "daemon", "library"} {
		write(module+"/go.mod", "module example.com/"+module+"\n\ngo 1.26.0\n")
	}
	write("fleet/cmd/manager/main.go", program)
	write("daemon/cmd/manager/main.go", program)
	write("daemon/cmd/agent/main.go", program)
	write("daemon/cmd/quick-exit/main.go", program)
	write("library/library.go", "package library\n")
	return root
}

// newRegistry serves an empty registry and returns its address.
func newRegistry(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func pullImage(t *testing.T, reference string) v1.Image {
	t.Helper()
	parsed, err := name.ParseReference(reference)
	require.NoError(t, err)
	image, err := remote.Image(parsed, remote.WithContext(t.Context()))
	require.NoError(t, err)
	require.NoError(t, validate.Image(image))
	return image
}

func digestOf(t *testing.T, described interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	digest, err := described.Digest()
	require.NoError(t, err)
	return digest.String()
}

// entries reads the image's file system, layer upon layer.
func entries(t *testing.T, image v1.Image) (map[string]*tar.Header, map[string][]byte) {
	t.Helper()
	headers, contents := map[string]*tar.Header{}, map[string][]byte{}
	files := mutate.Extract(image)
	defer func() { require.NoError(t, files.Close()) }()
	for reader := tar.NewReader(files); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return headers, contents
		}
		require.NoError(t, err)
		data, err := io.ReadAll(reader)
		require.NoError(t, err)
		path := strings.Trim(header.Name, "/")
		headers[path], contents[path] = header, data
	}
}

func TestSameSourcesGiveSameDigests(t *testing.T) {
	var runs [2][]images.Image
	for i := range runs {
		var err error
		runs[i], err = images.Managers(t.Context(), images.Options{
			Root: workspace(t), Output: t.TempDir(), Version: "1.2.3", Revision: "abc",
		})
		require.NoError(t, err)
	}
	assert.Equal(t, runs[0], runs[1])
	var references []string
	for _, image := range runs[0] {
		references = append(references, image.Reference)
	}
	assert.Equal(t, []string{
		"flotilla/fleet-manager:1.2.3", "flotilla/daemon-manager:1.2.3", "flotilla/daemon-agent:1.2.3", "flotilla/daemon-quick-exit:1.2.3",
	}, references)

	other, err := images.Managers(t.Context(), images.Options{Root: workspace(t), Output: t.TempDir(), Version: "1.2.4", Revision: "abc"})
	require.NoError(t, err)
	assert.NotEqual(t, runs[0][0].Digest, other[0].Digest)
}

func TestManagerImageHoldsABinaryAndLittleElse(t *testing.T) {
	address := newRegistry(t)
	built, err := images.Managers(t.Context(), images.Options{
		Root: workspace(t), Registry: address + "/prefix", Only: []string{"fleet"}, Version: "1.2.3", Tag: "latest",
		Revision: "abc", Platforms: []string{"linux/" + runtime.GOARCH},
	})
	require.NoError(t, err)
	require.Len(t, built, 1)
	assert.Equal(t, address+"/prefix/flotilla/fleet-manager:latest", built[0].Reference)
	image := pullImage(t, built[0].Reference)
	assert.Equal(t, built[0].Digest, digestOf(t, image))

	config, err := image.ConfigFile()
	require.NoError(t, err)
	assert.Equal(t, "65532:65532", config.Config.User)
	assert.Equal(t, []string{"/manager"}, config.Config.Entrypoint)
	assert.Equal(t, "linux/"+runtime.GOARCH, config.OS+"/"+config.Architecture)
	assert.Equal(t, map[string]string{
		"org.opencontainers.image.title":    "fleet-manager",
		"org.opencontainers.image.version":  "1.2.3",
		"org.opencontainers.image.revision": "abc",
		"org.opencontainers.image.source":   "https://github.com/flotilla-project/flotilla",
		"org.opencontainers.image.licenses": "Apache-2.0",
	}, config.Config.Labels)

	headers, contents := entries(t, image)
	modes := map[string]int64{}
	for path, header := range headers {
		modes[path] = header.Mode
		assert.Zero(t, header.ModTime.Unix(), path)
		assert.Zero(t, header.Uid, path)
	}
	assert.Equal(t, map[string]int64{"etc": 0o755, "etc/passwd": 0o644, "etc/group": 0o644, "tmp": 0o1777, "manager": 0o755}, modes)
	assert.Contains(t, string(contents["etc/passwd"]), "nonroot:x:65532:65532:")
	if runtime.GOOS == "linux" {
		binary := filepath.Join(t.TempDir(), "manager")
		require.NoError(t, os.WriteFile(binary, contents["manager"], 0o700))
		out, err := exec.CommandContext(t.Context(), binary).Output()
		require.NoError(t, err)
		assert.Equal(t, "version 1.2.3\n", string(out))
	}
}

func TestSeveralPlatformsGiveAnIndex(t *testing.T) {
	built, err := images.Managers(t.Context(), images.Options{Root: workspace(t), Registry: newRegistry(t), Only: []string{"fleet"}})
	require.NoError(t, err)
	reference, err := name.ParseReference(built[0].Reference)
	require.NoError(t, err)
	index, err := remote.Index(reference, remote.WithContext(t.Context()))
	require.NoError(t, err)
	require.NoError(t, validate.Index(index))
	assert.Equal(t, built[0].Digest, digestOf(t, index))
	manifest, err := index.IndexManifest()
	require.NoError(t, err)
	assert.Equal(t, types.OCIImageIndex, manifest.MediaType)
	var platforms []string
	for _, entry := range manifest.Manifests {
		platforms = append(platforms, entry.Platform.String())
		assert.Equal(t, types.OCIManifestSchema1, entry.MediaType)
	}
	assert.Equal(t, []string{"linux/amd64", "linux/arm64"}, platforms)
}

func TestLayoutHoldsTheNewestOfEachName(t *testing.T) {
	root, folder := workspace(t), t.TempDir()
	var newest []images.Image
	for _, version := range []string{"1.0.0", "1.0.1"} {
		var err error
		newest, err = images.Managers(t.Context(), images.Options{
			Root: root, Output: folder, Version: version, Tag: "latest", Platforms: []string{"linux/amd64"},
		})
		require.NoError(t, err)
	}
	index, err := layout.ImageIndexFromPath(folder)
	require.NoError(t, err)
	require.NoError(t, validate.Index(index))
	manifest, err := index.IndexManifest()
	require.NoError(t, err)
	var held []images.Image
	for _, entry := range manifest.Manifests {
		held = append(held, images.Image{Reference: entry.Annotations["org.opencontainers.image.ref.name"], Digest: entry.Digest.String()})
	}
	assert.ElementsMatch(t, newest, held)
}

// Whoever pushes images to a registry and applies manifests with that registry gets these images.
func TestImagesHaveTheTagOfTheirManifests(t *testing.T) {
	root := workspace(t)
	config := filepath.Join(root, "daemon", "config", "default")
	require.NoError(t, os.MkdirAll(config, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(config, "kustomization.yaml"), []byte("images:\n- {name: flotilla/daemon-manager, newTag: v0.3.0}\n"), 0o600))
	cases := []struct {
		name string
		o    images.Options
		want []string
	}{
		{"without a choice", images.Options{}, []string{"fleet-manager:dev", "daemon-manager:v0.3.0", "daemon-agent:v0.3.0", "daemon-quick-exit:v0.3.0"}},
		{"a version", images.Options{Version: "v1"}, []string{"fleet-manager:v1", "daemon-manager:v1", "daemon-agent:v1", "daemon-quick-exit:v1"}},
		{"a tag", images.Options{Version: "v1", Tag: "new"}, []string{"fleet-manager:new", "daemon-manager:new", "daemon-agent:new", "daemon-quick-exit:new"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.o.Root, c.o.Output, c.o.Platforms = root, t.TempDir(), []string{"linux/" + runtime.GOARCH}
			built, err := images.Managers(t.Context(), c.o)
			require.NoError(t, err)
			var got []string
			for _, image := range built {
				got = append(got, strings.TrimPrefix(image.Reference, "flotilla/"))
			}
			assert.Equal(t, c.want, got)
		})
	}
}

func TestMistakesAreNamed(t *testing.T) {
	root := workspace(t)
	broken := workspace(t)
	require.NoError(t, os.WriteFile(filepath.Join(broken, "fleet/cmd/manager/main.go"), []byte("package main\n\nfunc main() { nothing() }\n"), 0o600))
	for wanted, o := range map[string]images.Options{
		"neither a registry nor an output folder": {Root: root},
		"is called nobody":                        {Root: root, Output: t.TempDir(), Only: []string{"fleet", "nobody"}},
		"is called library":                       {Root: root, Output: t.TempDir(), Only: []string{"library"}},
		"want linux/ARCHITECTURE":                 {Root: root, Output: t.TempDir(), Platforms: []string{"windows/amd64"}},
		"undefined: nothing":                      {Root: broken, Output: t.TempDir(), Platforms: []string{"linux/amd64"}},
	} {
		t.Run(wanted, func(t *testing.T) {
			_, err := images.Managers(t.Context(), o)
			assert.ErrorContains(t, err, wanted)
		})
	}
}

func TestDemoAppVersionsDifferInALayer(t *testing.T) {
	address := newRegistry(t)
	built, err := images.Apps(t.Context(), address, "v1", "v2")
	require.NoError(t, err)
	digests := map[string]string{}
	for _, image := range built {
		digests[strings.TrimPrefix(image.Reference, address+"/"+images.DemoApp+":")] = image.Digest
		assert.Equal(t, image.Digest, digestOf(t, pullImage(t, image.Reference)))
	}
	require.Len(t, digests, 5)
	assert.Equal(t, digests["v1"], digests["v1-alias"])
	assert.Equal(t, digests["v2"], digests["v2-alias"])
	assert.NotEqual(t, digests["v1"], digests["v2"])

	layers := func(tag string) []v1.Layer {
		found, err := pullImage(t, address+"/"+images.DemoApp+":"+tag).Layers()
		require.NoError(t, err)
		return found
	}
	first, second := layers("v1"), layers("v2")
	require.Len(t, first, 3)
	for i := range first {
		assert.Equal(t, i < 2, digestOf(t, first[i]) == digestOf(t, second[i]), "layer %d", i)
	}
	_, contents := entries(t, pullImage(t, address+"/"+images.DemoApp+":crash"))
	assert.Contains(t, contents, "app/crash")
	assert.Equal(t, "crash\n", string(contents["app/version"]))
}

// BenchmarkImageStep measures everything but the compilation.
func BenchmarkImageStep(b *testing.B) {
	address := strings.TrimPrefix(serve(b), "http://")
	o := images.Options{Registry: address, Platforms: []string{"linux/" + runtime.GOARCH}}
	for b.Loop() {
		_, err := images.AppsTo(b.Context(), o, "v1", "v2", "v3")
		require.NoError(b, err)
	}
}

func serve(b *testing.B) string {
	b.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	b.Cleanup(server.Close)
	return server.URL
}
