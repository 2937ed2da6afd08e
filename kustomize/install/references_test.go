package install_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/install"
)

const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func rendered(t *testing.T, feature string, choices install.Choices) []*unstructured.Unstructured {
	t.Helper()
	features := selected(t, feature)
	settings, err := install.Read(features, choices)
	require.NoError(t, err)
	objects, err := install.Manifests(features[0], settings)
	require.NoError(t, err)
	return objects
}

func podOf(t *testing.T, objects []*unstructured.Unstructured, kind string) map[string]any {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() == kind {
			pod, _, err := unstructured.NestedMap(o.Object, "spec", "template", "spec")
			require.NoError(t, err)
			return pod
		}
	}
	t.Fatal("there is no " + kind)
	return nil
}

// Images are named as they were asked for, and every label can be stored.
func TestImagesAreNamedAsAskedFor(t *testing.T) {
	cases := []struct{ registry, version, image, label string }{
		{"registry.example/team//", "", "registry.example/team/flotilla/cloneset-manager:VERSION", "VERSION"},
		{"localhost:5000", "VERSION@" + digest, "localhost:5000/flotilla/cloneset-manager:VERSION@" + digest, "VERSION"},
		{"registry.example", digest, "registry.example/flotilla/cloneset-manager@" + digest, "VERSION"},
		{"registry.example", "a" + strings.Repeat("_", 80), "registry.example/flotilla/cloneset-manager:a" + strings.Repeat("_", 80), "a"},
		{"registry.example", "_", "registry.example/flotilla/cloneset-manager:_", "VERSION"},
	}
	version := selected(t, "cloneset")[0].Version
	for _, c := range cases {
		t.Run(c.image, func(t *testing.T) {
			choices := install.Choices{Registry: c.registry}
			if c.version != "" {
				choices.Versions = []string{strings.ReplaceAll(c.version, "VERSION", version)}
			}

			objects := rendered(t, "cloneset", choices)

			container := podOf(t, objects, "Deployment")["containers"].([]any)[0].(map[string]any)
			assert.Equal(t, strings.ReplaceAll(c.image, "VERSION", version), container["image"])
			for _, o := range objects {
				label := o.GetLabels()["app.kubernetes.io/version"]
				assert.Equal(t, strings.ReplaceAll(c.label, "VERSION", version), label)
				assert.Empty(t, validation.IsValidLabelValue(label))
			}
		})
	}
}

// A release knows the digests of its own images in its own registry. A mirror may lack platforms, and another version is another image.
func TestAReleasePinsItsImages(t *testing.T) {
	other := strings.Replace(digest, "0", "f", 1)
	catalog.Digests = "flotilla/daemon-agent=" + other + ",flotilla/daemon-manager=" + digest
	t.Cleanup(func() { catalog.Digests = "" })
	version := selected(t, "daemon")[0].Version
	for want, choices := range map[string]install.Choices{
		"release.example/flotilla/daemon-%s:" + version + "@%s": {},
		"mirror.example/flotilla/daemon-%s:" + version:          {Registry: "mirror.example"},
		"release.example/flotilla/daemon-%s:v0.1.9":             {Versions: []string{"v0.1.9"}},
	} {
		t.Run(want, func(t *testing.T) {
			objects := rendered(t, "daemon", choices)
			for kind, image := range map[string][]any{"Deployment": {"manager", digest}, "DaemonSet": {"agent", other}} {
				container := podOf(t, objects, kind)["containers"].([]any)[0].(map[string]any)
				assert.Equal(t, fmt.Sprintf(want, image[:strings.Count(want, "%")]...), container["image"])
			}
		})
	}
}

func TestReferencesThatMakeNoSense(t *testing.T) {
	for want, choices := range map[string]install.Choices{
		"--registry https://r.example: omit the scheme, as in registry.example.com/team": {Registry: "https://r.example/"},
		"--registry Foo Bar: ":                                        {Registry: "Foo Bar"},
		`--version a b: "a b" is not a valid image tag`:               {Versions: []string{"a b"}},
		`--version v0.1.0@sha256:1: "sha256:1" is not a valid digest`: {Versions: []string{"v0.1.0@sha256:1"}},
		`--version v0.1.0@: "" is not a valid digest`:                 {Versions: []string{"v0.1.0@"}},
		"daemon has 2 images, and a digest fits only one":             {Versions: []string{"daemon=" + digest}},
		"--image-pull-secret a/b: ":                                   {PullSecret: "a/b"},
		"--patch: open /nowhere: ":                                    {Patches: []string{"/nowhere"}},
	} {
		_, err := install.Read(selected(t, "cloneset", "daemon"), choices)
		require.ErrorContains(t, err, want)
		assert.Equal(t, cli.Misused, cli.CodeOf(err))
	}
}

func TestPullSecretsAreForManagersAndAgents(t *testing.T) {
	objects := rendered(t, "daemon", install.Choices{PullSecret: "mine"})
	for _, kind := range []string{"Deployment", "DaemonSet"} {
		assert.Equal(t, []any{map[string]any{"name": "mine"}}, podOf(t, objects, kind)["imagePullSecrets"], kind)
	}
}

// A patch changes the object that it names, and is remembered by the feature that has it.
func TestPatchesAreForTheObjectsThatTheyName(t *testing.T) {
	file := filepath.Join(t.TempDir(), "patch.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: cloneset-manager, namespace: flotilla-system}
spec: {template: {spec: {nodeSelector: {pool: system}}}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: daemon-agent, namespace: flotilla-system}
spec: {template: {spec: {nodeSelector: {pool: workers}}}}
`), 0o600))
	features := selected(t, "cloneset", "daemon")
	settings, err := install.Read(features, install.Choices{Patches: []string{file}})
	require.NoError(t, err)
	for i, pools := range []map[string]any{{"Deployment": "system"}, {"Deployment": nil, "DaemonSet": "workers"}} {
		objects, err := install.Manifests(features[i], settings)
		require.NoError(t, err)
		for kind, pool := range pools {
			selector, _ := podOf(t, objects, kind)["nodeSelector"].(map[string]any)
			assert.Equal(t, pool, selector["pool"], "%s of %s", kind, features[i].Name)
		}
		for _, o := range objects {
			if o.GetName() == features[i].Name+"-manager" && o.GetKind() == "Deployment" {
				earlier, lost, err := install.Recall(features[i], o)
				require.NoError(t, err)
				assert.Empty(t, lost)
				assert.Len(t, earlier.Patches, 1)
				again, err := install.Manifests(features[i], install.Settings{}.Over(features[i], earlier))
				require.NoError(t, err)
				assert.Equal(t, objects, again, "a later install keeps it")
			}
		}
	}

	output, code := call(t, "", "install", "jobs", "--registry=registry.example", "--dry-run=client", "--patch", file)
	assert.Equal(t, cli.Misused, code)
	assert.Contains(t, output, "--patch: Deployment flotilla-system/cloneset-manager, DaemonSet flotilla-system/daemon-agent not found in the manifests")
}

// A build that is no release knows no registry, and what a public one has under these names is not this project's.
func TestABuildThatIsNoReleaseNeedsARegistry(t *testing.T) {
	released := catalog.Registry
	t.Cleanup(func() { catalog.Registry = released })
	output, code := call(t, "", "install", "jobs", "--dry-run=client")
	assert.Equal(t, cli.Done, code)
	assert.Contains(t, output, "image: release.example/flotilla/jobs-manager:")

	catalog.Registry = ""
	output, code = call(t, "", "install", "jobs", "--dry-run=client")
	assert.Equal(t, cli.Misused, code)
	assert.Contains(t, output, "has no default registry: add --registry REGISTRY")
	assert.NotContains(t, output, "kind:")
	_, code = call(t, "", "install", "jobs", "--dry-run=client", "--registry=registry.example")
	assert.Equal(t, cli.Done, code)
}
