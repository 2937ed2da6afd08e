package render_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	cloneset "github.com/flotilla-project/flotilla/cloneset/config"
	daemon "github.com/flotilla-project/flotilla/daemon/config"
	"github.com/flotilla-project/flotilla/kustomize"
	"github.com/flotilla-project/flotilla/kustomize/render"
	statefulset "github.com/flotilla-project/flotilla/statefulset/config"
)

func repository(t *testing.T) render.Tree {
	t.Helper()
	tree, err := render.NewTree(map[string]fs.FS{
		"kustomize":          kustomize.Files,
		"cloneset/config":    cloneset.Files,
		"daemon/config":      daemon.Files,
		"statefulset/config": statefulset.Files,
	})
	require.NoError(t, err)
	return tree
}

// TestOverlays compares every overlay with what a reviewer has seen; UPDATE_GOLDEN=1 writes it anew. The
// schema of a CRD has a file of its own and is left out here.
func TestOverlays(t *testing.T) {
	overlays, err := fs.Glob(kustomize.Files, "overlays/*")
	require.NoError(t, err)
	require.NotEmpty(t, overlays)
	for _, overlay := range overlays {
		t.Run(filepath.Base(overlay), func(t *testing.T) {
			var renderer render.Renderer
			manifests, err := renderer.Build(repository(t), "kustomize/"+overlay)
			require.NoError(t, err)
			assertGolden(t, filepath.Base(overlay)+".yaml", withoutCRDs(manifests))
		})
	}
}

func withoutCRDs(manifests []byte) string {
	var kept []string
	for document := range strings.SplitSeq(string(manifests), "\n---\n") {
		if strings.Contains(document, "\nkind: CustomResourceDefinition\n") {
			document = "# a CustomResourceDefinition"
		}
		kept = append(kept, document)
	}
	return strings.Join(kept, "\n---\n")
}

func assertGolden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

// Every overlay brings the namespace along, which kustomize refuses twice: features that go together share
// the base. No two objects of theirs have one name.
func TestFeaturesShareOneKustomization(t *testing.T) {
	tree, err := render.NewTree(map[string]fs.FS{
		"kustomize":          kustomize.Files,
		"cloneset/config":    cloneset.Files,
		"daemon/config":      daemon.Files,
		"statefulset/config": statefulset.Files,
		"mine": fstest.MapFS{"kustomization.yaml": {Data: []byte(`
resources: [../kustomize/base, ../cloneset/config/default, ../daemon/config/default, ../statefulset/config/default]
`)}},
	})
	require.NoError(t, err)
	var renderer render.Renderer

	manifests, err := renderer.Build(tree, "mine")

	require.NoError(t, err)
	assert.Contains(t, string(manifests), "  name: flotilla-system\n")
	for _, name := range []string{"cloneset-manager", "daemon-manager", "statefulset-manager"} {
		assert.Contains(t, string(manifests), "image: flotilla/"+name+":")
	}
}

func TestImagesAndComponentsAreChosenByAnOverlay(t *testing.T) {
	tree, err := render.NewTree(map[string]fs.FS{
		"cloneset/config": cloneset.Files,
		"mine": fstest.MapFS{"kustomization.yaml": {Data: []byte(`
resources: [../cloneset/config/default]
components: [../cloneset/config/flowcontrol]
images:
- name: flotilla/cloneset-manager
  newName: registry.example/flotilla/cloneset-manager
  newTag: test
`)}},
	})
	require.NoError(t, err)

	var renderer render.Renderer
	manifests, err := renderer.Build(tree, "mine")

	require.NoError(t, err)
	assert.Contains(t, string(manifests), "image: registry.example/flotilla/cloneset-manager:test\n")
	assert.Contains(t, string(manifests), "kind: FlowSchema\n")
}

// A component turns a feature gate on and grants what it needs besides. Several go together.
func TestGatesAreChosenByAnOverlay(t *testing.T) {
	tree, err := render.NewTree(map[string]fs.FS{
		"statefulset/config": statefulset.Files,
		"mine": fstest.MapFS{"kustomization.yaml": {Data: []byte(`
resources: [../statefulset/config/default]
components: [../statefulset/config/resize, ../statefulset/config/predownload]
`)}},
	})
	require.NoError(t, err)
	var renderer render.Renderer
	without, err := renderer.Build(tree, "statefulset/config/default")
	require.NoError(t, err)

	with, err := renderer.Build(tree, "mine")

	require.NoError(t, err)
	for _, line := range []string{
		"- storageclasses\n", "- --feature-gates=StatefulSetAutoResizePVCGate=true\n",
		"- imagepulljobs\n", "- --feature-gates=PreDownloadImageForInPlaceUpdate=true\n",
	} {
		assert.NotContains(t, string(without), line)
		assert.Contains(t, string(with), line)
	}
}

// Which runtime the nodes have, and which pods the manager is asked about, is chosen by an overlay.
func TestComponentsOfTheNodeAgentAreChosenByAnOverlay(t *testing.T) {
	cases := []struct{ component, want, without string }{
		{"crio", "mountPath: /hostvarrun/crio\n", "mountPath: /hostvarrun/containerd\n"},
		{"cri-dockerd", "path: /run/cri-dockerd.sock\n", "path: /run/containerd\n"},
		{"readinessgate", "path: /mutate-pod-readiness-gate\n", "path: /hostvarrun/crio\n"},
		{"flowcontrol", "kind: FlowSchema\n", "path: /hostvarrun/crio\n"},
	}
	for _, c := range cases {
		t.Run(c.component, func(t *testing.T) {
			tree, err := render.NewTree(map[string]fs.FS{
				"daemon/config": daemon.Files,
				"mine": fstest.MapFS{"kustomization.yaml": {Data: []byte(`
resources: [../daemon/config/default]
components: [../daemon/config/` + c.component + `]
`)}},
			})
			require.NoError(t, err)
			var renderer render.Renderer

			manifests, err := renderer.Build(tree, "mine")

			require.NoError(t, err)
			assert.Contains(t, string(manifests), c.want)
			assert.NotContains(t, string(manifests), c.without)
		})
	}
}

func TestBuildNamesTheFolderThatIsWrong(t *testing.T) {
	cases := []struct{ name, kustomization string }{
		{"unknown field", "resourcez: [a]"},
		{"missing resource", "resources: [../nowhere]"},
		{"no YAML", "{"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			tree, err := render.NewTree(map[string]fs.FS{
				"broken": fstest.MapFS{"kustomization.yaml": {Data: []byte(c.kustomization)}},
			})
			require.NoError(t, err)
			var renderer render.Renderer
			_, err = renderer.Build(tree, "broken")
			assert.ErrorContains(t, err, "build broken: ")
		})
	}
}

func TestBuildsMayBeAskedForAtTheSameTime(t *testing.T) {
	var renderer render.Renderer
	tree := repository(t)
	want, err := renderer.Build(tree, "kustomize/base")
	require.NoError(t, err)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			got, err := renderer.Build(tree, "kustomize/base")
			if assert.NoError(t, err) {
				assert.Equal(t, want, got)
			}
		})
	}
	group.Wait()
}
