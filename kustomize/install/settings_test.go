package install_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/install"
)

func selected(t *testing.T, names ...string) []catalog.Feature {
	t.Helper()
	features, err := catalog.Select(names...)
	require.NoError(t, err)
	return features
}

// another returns a tag that fits the manifests of a feature and is not theirs: its version and a word.
func another(t *testing.T, feature, word string) string {
	t.Helper()
	return selected(t, feature)[0].Version + "-" + word
}

func TestSettingsThatMakeNoSense(t *testing.T) {
	cases := []struct {
		name                        string
		versions, components, gates []string
		namespace, want             string
	}{
		{"another minor version", []string{"cloneset=v0.999.0"}, nil, nil, "", "v0.999.0 is another minor version: use the command of that version"},
		{"the version of nothing", []string{"budget=v0.1.0"}, nil, nil, "", "budget is not one of the features to install"},
		{"no version", []string{"cloneset="}, nil, nil, "", `--version "cloneset=" must have a tag, as in v0.1.0 or FEATURE=v0.1.0`},
		{"no such component", nil, []string{"helm"}, nil, "", `unknown component "helm": use certmanager, `},
		{"a gate without a value", nil, nil, []string{"SidecarTerminator"}, "", "--feature-gates SidecarTerminator: must be NAME=true, NAME=false or NAME-"},
		{"a gate of nobody", nil, nil, []string{"Unknown=true"}, "", "these features have no such feature gate; docs/reference/flags.md"},
		{"a gate of another feature", nil, nil, []string{"jobs:CloneSetShortHash=true"}, "", "jobs has no such feature gate; these features have it: cloneset"},
		{"a namespace for the component", nil, []string{"namespaced"}, nil, "", "--only-namespace NAME"},
		{"the operators' namespace", nil, nil, nil, "flotilla-system", "--only-namespace must not be flotilla-system: the operators run there"},
		{"no namespace", nil, nil, nil, "a/b", "--only-namespace a/b: "},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := install.Read(selected(t, "cloneset", "jobs"), install.Choices{
				Versions: c.versions, Components: c.components, Gates: c.gates, OnlyNamespace: c.namespace,
			})

			require.ErrorContains(t, err, c.want)
			assert.Equal(t, cli.Misused, cli.CodeOf(err))
		})
	}
}

// The kustomization is what a user would have written.
func TestKustomization(t *testing.T) {
	features, tag := selected(t, "cloneset", "jobs"), another(t, "jobs", "new")
	settings, err := install.Read(features, install.Choices{
		Registry: "registry.example/team/", Versions: []string{"jobs=" + tag},
		Components: []string{"highavailability", "flowcontrol"}, Gates: []string{"SidecarTerminator=true", "cloneset:CloneSetShortHash=false"},
	})
	require.NoError(t, err)

	text, err := yaml.Marshal(install.Kustomization(features[1], settings))
	require.NoError(t, err)
	assert.Equal(t, strings.ReplaceAll(strings.TrimLeft(`
apiVersion: kustomize.config.k8s.io/v1beta1
components:
- ../kustomize/components/highavailability
- ../jobs/config/flowcontrol
- ../jobs/config/sidecarterminator
images:
- name: flotilla/jobs-manager
  newName: registry.example/team/flotilla/jobs-manager
  newTag: VERSION
kind: Kustomization
labels:
- pairs:
    app.kubernetes.io/managed-by: flotilla
    app.kubernetes.io/part-of: flotilla
    app.kubernetes.io/version: VERSION
resources:
- ../jobs/config/default
`, "\n"), "VERSION", tag), string(text))

	other := install.Kustomization(features[0], settings)
	require.Len(t, other.Patches, 1)
	assert.Contains(t, other.Patches[0].Patch, "--feature-gates=CloneSetShortHash=false")
}

// A gate that is mistyped is refused, one that an earlier command has taken can be forgotten, and one without a feature is for all
// that read it.
func TestGatesOfFeatures(t *testing.T) {
	_, err := install.Read(selected(t, "jobs"), install.Choices{Gates: []string{"Typo=true"}})
	require.EqualError(t, err, "--feature-gates Typo=true: jobs has no such feature gate; it has EnableExternalCerts, ImagePullJobGate, KruiseDaemon, SidecarTerminator")
	both, err := install.Read(selected(t, "cloneset", "jobs", "spread"), install.Choices{Gates: []string{"KruiseDaemon=false"}})
	require.NoError(t, err)
	off := []install.Gate{{Name: "KruiseDaemon"}}
	assert.Equal(t, map[string][]install.Gate{"cloneset": off, "jobs": off}, both.Gates)

	jobs := selected(t, "jobs")[0]
	earlier := install.Settings{Gates: map[string][]install.Gate{"jobs": {{Name: "KruiseDaemon"}, {Name: "SidecarTerminator", On: true}}}}
	for _, text := range []string{"KruiseDaemon-", "jobs:KruiseDaemon-"} {
		forget, err := install.Read(selected(t, "jobs"), install.Choices{Gates: []string{text, "Typo-"}})
		require.NoError(t, err)
		assert.Equal(t, []install.Gate{{Name: "SidecarTerminator", On: true}}, forget.Over(jobs, earlier).Gates["jobs"])
		assert.Empty(t, forget.Over(jobs, install.Settings{}).Gates)
	}
}

// A component counts once, however often it is named: by itself, in the settings of an earlier install, and by its feature gate.
func TestAComponentIsThereOnce(t *testing.T) {
	features := selected(t, "jobs")
	settings, err := install.Read(features, install.Choices{
		Components: []string{"sidecarterminator", "certmanager", "prometheus", "prometheus", "certmanager"}, Gates: []string{"SidecarTerminator=true"},
	})
	require.NoError(t, err)

	assert.Equal(t, []string{"../jobs/config/sidecarterminator", "../jobs/config/certmanager", "../kustomize/components/prometheus", "../jobs/config/prometheus"},
		install.Kustomization(features[0], settings).Components)
	_, err = install.Manifests(features[0], settings)
	require.NoError(t, err)
}

func TestManifests(t *testing.T) {
	features := selected(t, "daemon")
	settings, err := install.Read(features, install.Choices{
		Registry: "registry.example", Versions: []string{"test"}, Components: []string{"networkpolicy"}, Gates: []string{"DaemonWatchingPod=false"},
	})
	require.NoError(t, err)

	objects, err := install.Manifests(features[0], settings)

	require.NoError(t, err)
	kinds := map[string]int{}
	for _, object := range objects {
		kinds[object.GetKind()]++
		assert.Equal(t, "flotilla", object.GetLabels()["app.kubernetes.io/managed-by"], object.GetName())
	}
	assert.Equal(t, 2, kinds["NetworkPolicy"], "of the manager and of the agents")
	assert.Equal(t, 2, kinds["CustomResourceDefinition"])
	text, err := yaml.Marshal(objects)
	require.NoError(t, err)
	for _, want := range []string{
		"image: registry.example/flotilla/daemon-manager:test\n", "image: registry.example/flotilla/daemon-agent:test\n",
		"- --feature-gates=DaemonWatchingPod=false\n",
	} {
		assert.Contains(t, string(text), want)
	}
}

// Who installs an operator, in which version and with which components is no reason to restart it: its pods change with their
// image and their arguments alone.
func TestLabelsOfPodsAreThoseOfTheManifests(t *testing.T) {
	for _, feature := range selected(t, catalog.All) {
		settings := install.Everything(feature)
		settings.Registry, settings.Versions = "registry.example", map[string]string{feature.Name: another(t, feature.Name, "new")}
		settings.Components = append(install.Shared(), settings.Components...)
		settings.Gates = map[string][]install.Gate{feature.Name: {{Name: "Extra", On: true}}}
		labels := func(settings install.Settings) map[string]map[string]string {
			objects, err := install.Manifests(feature, settings)
			require.NoError(t, err)
			found := map[string]map[string]string{}
			for _, object := range objects {
				if kind := object.GetKind(); kind == "Deployment" || kind == "DaemonSet" {
					of, _, err := unstructured.NestedStringMap(object.Object, "spec", "template", "metadata", "labels")
					require.NoError(t, err)
					found[object.GetName()] = of
				}
			}
			return found
		}

		with := labels(settings)

		assert.Equal(t, labels(install.Settings{}), with)
		for name, of := range with {
			for label := range of {
				assert.NotContains(t, []string{"app.kubernetes.io/managed-by", "app.kubernetes.io/version", install.FeatureLabel}, label, name)
			}
		}
	}
}

// No right to namespaced objects is left in the whole cluster, whatever the feature and its gates.
func TestOneNamespace(t *testing.T) {
	for _, feature := range selected(t, catalog.All) {
		t.Run(feature.Name, func(t *testing.T) {
			settings := install.Everything(feature)
			settings.OnlyNamespace = "team"

			objects, err := install.Manifests(feature, settings)

			require.NoError(t, err)
			found := map[string]bool{}
			for _, object := range objects {
				found[object.GetKind()+" "+object.GetNamespace()+"/"+object.GetName()] = true
				assert.NotEqual(t, "replaced-below", object.GetNamespace(), object.GetName())
				if object.GetLabels()["apps.kruise.io/rights"] == "namespaced" {
					assert.Equal(t, "team", object.GetNamespace(), object.GetKind())
				}
			}
			name := feature.Name + "-manager"
			assert.True(t, found["Role team/"+name] && found["RoleBinding team/"+name] && found["ClusterRole /"+name+"-cluster"], found)
			assert.False(t, found["ClusterRole /"+name] || found["ClusterRoleBinding /"+name] || found["ConfigMap /flotilla-namespaced"], found)
			text, err := yaml.Marshal(objects)
			require.NoError(t, err)
			assert.Contains(t, string(text), "- --namespace=$(ONLY_NAMESPACE)\n")
			assert.Contains(t, string(text), "name: ONLY_NAMESPACE\n            value: team\n")
		})
	}
}
