package render_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/kustomize/render"
)

// repository returns this work tree.
func repository(t *testing.T) map[string]fs.FS {
	t.Helper()
	folders, err := render.Folders(os.DirFS(filepath.Join("..", "..")))
	require.NoError(t, err)
	return folders
}

// lean returns this work tree with CRDs that have no schema: those take kustomize most of its time.
func lean(t *testing.T) map[string]fs.FS {
	t.Helper()
	folders := repository(t)
	for folder, files := range folders {
		if !strings.HasSuffix(folder, "/config") {
			continue
		}
		short := fstest.MapFS{}
		require.NoError(t, fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := fs.ReadFile(files, name)
			if path.Dir(name) == "crd" && strings.Contains(string(content), "\nkind: CustomResourceDefinition\n") {
				metadata, _, _ := strings.Cut(string(content), "\nspec:\n")
				content = []byte(metadata + "\n")
			}
			short[name] = &fstest.MapFile{Data: content}
			return err
		}))
		folders[folder] = short
	}
	return folders
}

// build renders a folder of this work tree.
func build(t *testing.T, folder string) string {
	t.Helper()
	return rendered(t, lean(t), folder)
}

// buildMine renders a user's kustomization beside the modules of this work tree.
func buildMine(t *testing.T, kustomization string) string {
	t.Helper()
	folders := lean(t)
	folders["mine"] = fstest.MapFS{"kustomization.yaml": {Data: []byte(kustomization)}}
	return rendered(t, folders, "mine")
}

func rendered(t *testing.T, folders map[string]fs.FS, folder string) string {
	t.Helper()
	tree, err := render.NewTree(folders)
	require.NoError(t, err)
	var renderer render.Renderer
	manifests, err := renderer.Build(tree, folder)
	require.NoError(t, err)
	return string(manifests)
}

// features returns the modules that have manifests.
func features(t *testing.T) []string {
	t.Helper()
	var names []string
	for folder := range repository(t) {
		if name, ok := strings.CutSuffix(folder, "/config"); ok {
			names = append(names, name)
		}
	}
	require.NotEmpty(t, names)
	return slices.Sorted(slices.Values(names))
}

// TestOverlays compares every overlay with what a reviewer has seen; UPDATE_GOLDEN=1 writes it anew. The
// schema of a CRD has a file of its own and is left out here; test/install renders it.
func TestOverlays(t *testing.T) {
	for _, feature := range features(t) {
		t.Run(feature, func(t *testing.T) {
			assertGolden(t, feature+".yaml", unversioned(t, feature, withoutCRDs(build(t, "kustomize/overlays/"+feature))))
		})
	}
}

// unversioned replaces the version of a feature, which each release raises.
func unversioned(t *testing.T, feature, manifests string) string {
	t.Helper()
	description, err := fs.ReadFile(repository(t)[feature+"/config"], "feature.yaml")
	require.NoError(t, err)
	version := regexp.MustCompile(`(?m)^version: (\S+)`).FindStringSubmatch(string(description))
	require.NotNil(t, version)
	return strings.ReplaceAll(manifests, version[1], "VERSION")
}

func withoutCRDs(manifests string) string {
	var kept []string
	for document := range strings.SplitSeq(manifests, "\n---\n") {
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
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

// Every overlay brings the namespace along, which kustomize refuses twice: features that go together share
// the base. No two objects of theirs have one name.
func TestFeaturesShareOneKustomization(t *testing.T) {
	resources := []string{"../kustomize/base"}
	for _, feature := range features(t) {
		resources = append(resources, "../"+feature+"/config/default")
	}

	manifests := buildMine(t, "resources: ["+strings.Join(resources, ", ")+"]\n")

	assert.Contains(t, manifests, "  name: flotilla-system\n")
	for _, feature := range features(t) {
		assert.Contains(t, manifests, "image: flotilla/"+feature+"-manager:")
	}
}

func TestImagesAndComponentsAreChosenByAnOverlay(t *testing.T) {
	for _, feature := range features(t) {
		t.Run(feature, func(t *testing.T) {
			manifests := buildMine(t, strings.ReplaceAll(`
resources: [../FEATURE/config/default]
components: [../FEATURE/config/flowcontrol]
images:
- name: flotilla/FEATURE-manager
  newName: registry.example/flotilla/FEATURE-manager
  newTag: test
`, "FEATURE", feature))

			assert.Contains(t, manifests, "image: registry.example/flotilla/"+feature+"-manager:test\n")
			assert.Contains(t, manifests, "kind: FlowSchema\n")
		})
	}
}

// A component turns a feature gate on and grants what it needs besides. Several go together.
func TestGatesAreChosenByAnOverlay(t *testing.T) {
	without := build(t, "statefulset/config/default")

	with := buildMine(t, `
resources: [../statefulset/config/default]
components: [../statefulset/config/resize, ../statefulset/config/predownload]
`)

	for _, line := range []string{
		"- storageclasses\n", "- --feature-gates=StatefulSetAutoResizePVCGate=true\n",
		"- imagepulljobs\n", "- --feature-gates=PreDownloadImageForInPlaceUpdate=true\n",
	} {
		assert.NotContains(t, without, line)
		assert.Contains(t, with, line)
	}
}

// A component of default that grants something is left out by the patch that the component itself names.
func TestAGrantIsLeftOutByAnOverlay(t *testing.T) {
	readme, err := fs.ReadFile(repository(t)["jobs/config"], "pullsecrets/kustomization.yaml")
	require.NoError(t, err)
	patches := regexp.MustCompile(`(?m)^#   (.*\n)`).FindAllStringSubmatch(string(readme), -1)
	require.Len(t, patches, 3)
	var patch strings.Builder
	for _, line := range patches {
		patch.WriteString(line[1])
	}
	for _, overlay := range []string{"kustomize/overlays/jobs", "kustomize/overlays/all", "jobs/config/default"} {
		with := build(t, overlay)
		require.Contains(t, with, "\n  name: jobs-manager-pullsecrets\n", overlay)

		without := buildMine(t, "resources: [../"+overlay+"]\n"+patch.String())

		assert.NotContains(t, without, "jobs-manager-pullsecrets")
		assert.Equal(t, strings.Count(with, "\nkind: ClusterRole")-2, strings.Count(without, "\nkind: ClusterRole"), "a role and its binding")
	}
}

// Which runtime the nodes have, and which pods the manager is asked about, is chosen by an overlay.
func TestComponentsOfTheNodeAgentAreChosenByAnOverlay(t *testing.T) {
	cases := []struct{ component, want, without string }{
		{"crio", "mountPath: /hostvarrun/crio\n", "mountPath: /hostvarrun/containerd\n"},
		{"cri-dockerd", "path: /run/cri-dockerd.sock\n", "path: /run/containerd\n"},
		{"k3s", "path: /run/k3s/containerd\n", "path: /run/containerd\n"},
		{"rke2", "path: /run/k3s/containerd\n", "path: /run/containerd\n"},
		{"microk8s", "path: /var/snap/microk8s/common/run\n", "path: /run/containerd\n"},
		{"k0s", "path: /run/k0s\n", "path: /run/containerd\n"},
		{"credentialplugins", "mountPath: /etc/ssl/certs\n", "path: /hostvarrun/crio\n"},
		{"readinessgate", "path: /mutate-pod-readiness-gate\n", "path: /hostvarrun/crio\n"},
		{"flowcontrol", "kind: FlowSchema\n", "path: /hostvarrun/crio\n"},
	}
	for _, c := range cases {
		t.Run(c.component, func(t *testing.T) {
			manifests := buildMine(t, "resources: [../daemon/config/default]\ncomponents: [../daemon/config/"+c.component+"]\n")

			assert.Contains(t, manifests, c.want)
			assert.NotContains(t, manifests, c.without)
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
	tree, err := render.NewTree(repository(t))
	require.NoError(t, err)
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

// Who installs into another namespace has the policy about tokens there: it goes by a label of the namespace.
func TestTheBaseFitsAnyNamespace(t *testing.T) {
	manifests := buildMine(t, "namespace: platform\nresources: [../kustomize/overlays/cloneset]\n")

	assert.Contains(t, manifests, "kind: Namespace\nmetadata:\n  labels:\n    app.kubernetes.io/part-of: flotilla\n")
	assert.Contains(t, manifests, "\n  name: platform\n")
	for document := range strings.SplitSeq(manifests, "\n---\n") {
		if strings.Contains(document, "kind: ValidatingAdmissionPolicy") {
			assert.NotContains(t, document, "flotilla-system")
		}
	}
	assert.Contains(t, manifests, "    namespaceSelector:\n      matchLabels:\n        app.kubernetes.io/part-of: flotilla\n")
}
