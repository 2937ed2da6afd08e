package charts

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/charts"
	"github.com/flotilla-project/flotilla/kustomize/install"
)

// choice is what a user chooses, by flags of flotilla install and by values of the charts.
type choice struct {
	name string
	with install.Choices
	// operator are values of the chart of the feature. The others get the components.
	operator map[string]any
}

const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// choices returns what is chosen for a feature: each component, each feature gate and each setting alone, and several together.
func choices(t *testing.T, feature catalog.Feature) []choice {
	t.Helper()
	components := charts.Components(feature)
	all := []choice{{name: "nothing"}}
	for _, component := range components {
		all = append(all, chosen(component), restricted(chosen(component)))
	}
	// Runtimes of nodes exclude each other.
	together := slices.DeleteFunc(slices.Clone(components), func(name string) bool {
		return slices.Contains([]string{"cri-dockerd", "crio", "k0s", "k3s", "microk8s"}, name)
	})
	all = append(all, chosen(together...), restricted(chosen(together...)), restricted(choice{}))
	for _, component := range feature.Defaults {
		without := choice{
			name: "without " + component, with: install.Choices{Without: []string{component}},
			operator: map[string]any{"without": []any{component}},
		}
		all = append(all, without, restricted(without))
	}
	for _, gate := range feature.Gates {
		for _, on := range []string{"true", "false"} {
			all = append(all, choice{
				name: gate + "=" + on, with: install.Choices{Gates: []string{gate + "=" + on}},
				operator: map[string]any{"featureGates": map[string]any{gate: on == "true"}},
			})
		}
	}
	all = append(all,
		choice{
			name: "a tag", with: install.Choices{Versions: []string{"v0.1.7-rc.1"}},
			operator: map[string]any{"tag": "v0.1.7-rc.1"},
		},
		choice{
			name: "a pull secret", with: install.Choices{PullSecret: "team.pull"},
			operator: map[string]any{"imagePullSecret": "team.pull"},
		},
	)
	if len(feature.Images) == 1 {
		digests := map[string]any{feature.Name + "-manager": digest}
		all = append(all,
			choice{name: "a digest", with: install.Choices{Versions: []string{digest}}, operator: map[string]any{"digests": digests}},
			choice{
				name: "a tag and a digest", with: install.Choices{Versions: []string{"v0.1.7@" + digest}},
				operator: map[string]any{"tag": "v0.1.7", "digests": digests},
			},
		)
	}
	return append(all, patched(t, feature), everything(t, feature, together))
}

func chosen(components ...string) choice {
	var list []any
	for _, component := range components {
		list = append(list, component)
	}
	return choice{
		name: strings.Join(components, ","), with: install.Choices{Components: components},
		operator: map[string]any{"components": list},
	}
}

// restricted is a choice for one namespace only.
func restricted(c choice) choice {
	operator := maps.Clone(c.operator)
	if operator == nil {
		operator = map[string]any{}
	}
	c.name, c.with.OnlyNamespace, operator["onlyNamespace"] = strings.TrimSpace(c.name+" for a namespace"), "team", "team"
	c.operator = operator
	return c
}

// patched are the settings of workloads, which flotilla install takes as patches.
func patched(t *testing.T, feature catalog.Feature) choice {
	t.Helper()
	file := filepath.Join(t.TempDir(), "patches.yaml")
	text := strings.ReplaceAll(`apiVersion: apps/v1
kind: Deployment
metadata: {name: FEATURE-manager}
spec:
  replicas: 3
  template:
    spec:
      nodeSelector: {pool: operators}
      tolerations: [{key: dedicated, operator: Exists}]
      containers:
      - name: manager
        resources: {requests: {memory: 1Gi}, limits: {memory: 2Gi}}
`, "FEATURE", feature.Name)
	operator := values(t, `
replicas: 3
nodeSelector: {pool: operators}
tolerations: [{key: dedicated, operator: Exists}]
resources: {requests: {memory: 1Gi}, limits: {memory: 2Gi}}
`)
	if len(feature.Images) > 1 {
		text += `---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: daemon-agent}
spec:
  template:
    spec:
      nodeSelector: {pool: workers}
      containers:
      - name: agent
        resources: {limits: {memory: 2Gi}}
`
		operator["agent"] = values(t, "{nodeSelector: {pool: workers}, resources: {limits: {memory: 2Gi}}}")
	}
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return choice{name: "replicas, resources and nodes", with: install.Choices{Patches: []string{file}}, operator: operator}
}

// everything is many settings at once.
func everything(t *testing.T, feature catalog.Feature, components []string) choice {
	t.Helper()
	all := restricted(patched(t, feature))
	all.name, all.with.Components, all.operator["components"] = "everything", components, chosen(components...).operator["components"]
	all.with.PullSecret, all.operator["imagePullSecret"] = "pull", "pull"
	gates := map[string]any{}
	for _, gate := range feature.Gates {
		all.with.Gates = append(all.with.Gates, gate+"=false")
		gates[gate] = false
	}
	all.operator["featureGates"] = gates
	return all
}

// A chart is another way to the same objects: whoever changes the tool changes no manager.
func TestChartsRenderTheObjectsOfInstall(t *testing.T) {
	features, err := catalog.Features()
	require.NoError(t, err)
	for _, feature := range features {
		light, err := feature.WithoutSchemas()
		require.NoError(t, err)
		for _, c := range choices(t, feature) {
			t.Run(feature.Name+" with "+c.name, func(t *testing.T) {
				c.with.Registry = registry
				settings, err := install.Read([]catalog.Feature{feature}, c.with)
				require.NoError(t, err)
				manifests, err := install.Manifests(light, settings.Over(feature, install.Settings{}))
				require.NoError(t, err)
				var own, shared []object
				for _, o := range manifests {
					switch {
					case o.GetKind() == "CustomResourceDefinition":
					case install.IsShared(o):
						shared = append(shared, o)
					default:
						own = append(own, o)
					}
				}

				given := maps.Clone(c.operator)
				if given == nil {
					given = map[string]any{}
				}
				given["registry"] = registry
				got, err := render(t, feature.Name, given)
				require.NoError(t, err)
				same(t, asFlotilla(own), asFlotilla(got))

				base, err := render(t, charts.Base, map[string]any{"components": ofBase(c.with.Components)})
				require.NoError(t, err)
				without := slices.DeleteFunc(base, func(o object) bool { return !install.IsShared(o) })
				same(t, versionless(asFlotilla(shared)), versionless(asFlotilla(without)))
			})
		}
	}
}

// ofBase returns those of components that chart flotilla-base has.
func ofBase(components []string) []any {
	all := []any{}
	for _, component := range components {
		if component == "networkpolicy" || component == "prometheus" {
			all = append(all, component)
		}
	}
	return all
}

// The command itself, with CRDs and the objects that features share.
func TestChartsTogetherRenderWhatInstallPrints(t *testing.T) {
	features, err := catalog.Features()
	require.NoError(t, err)
	for _, feature := range features {
		for _, component := range []string{"", "certmanager"} {
			t.Run(feature.Name+" with "+component, func(t *testing.T) {
				args, list := []string{feature.Name, "--registry", registry, "--dry-run=client"}, []any{}
				if component != "" {
					args, list = append(args, "--component", component), append(list, component)
				}
				var printed bytes.Buffer
				command := install.NewCommand(genericclioptions.NewConfigFlags(false), genericiooptions.IOStreams{Out: &printed, ErrOut: &printed})
				command.SetArgs(args)
				require.NoError(t, command.ExecuteContext(t.Context()), printed.String())

				var got []object
				for name, given := range map[string]map[string]any{
					charts.Base:                        {"namespace": map[string]any{"create": true}},
					charts.DefinitionsOf(feature.Name): {"components": list},
					feature.Name:                       {"components": list, "registry": registry},
				} {
					rendered, err := render(t, name, given)
					require.NoError(t, err)
					got = append(got, rendered...)
				}
				want := decode(t, &printed)
				same(t, asFlotilla(want), asFlotilla(got))
			})
		}
	}
}

// The umbrella charts have the objects of the charts that they consist of, for the features that are enabled.
func TestUmbrellasRenderTheChartsOfEnabledFeatures(t *testing.T) {
	shared := "global: {registry: registry.example.com/team, imagePullSecret: pull, components: [highavailability, certmanager, networkpolicy]}\n"
	alone := func(name, given string) []object {
		objects, err := render(t, name, values(t, given))
		require.NoError(t, err)
		return objects
	}
	for _, umbrella := range []string{charts.Umbrella, charts.Definitions} {
		two, err := render(t, umbrella, values(t, shared+"cloneset: {enabled: true}\njobs: {enabled: true}"))
		require.NoError(t, err)
		var want []object
		if umbrella == charts.Umbrella {
			want = append(alone("cloneset", shared), alone("jobs", shared)...)
			want = append(want, alone(charts.Base, shared)...)
		} else {
			want = append(alone("cloneset-crds", shared), alone("jobs-crds", shared)...)
		}
		same(t, want, two)

		every, err := render(t, umbrella, values(t, shared+"tags: {all: true}"))
		require.NoError(t, err)
		most, err := render(t, umbrella, values(t, shared+"tags: {all: true}\ncloneset: {enabled: false}\njobs: {enabled: false}"))
		require.NoError(t, err)
		assert.Greater(t, len(most), len(two))
		parts := map[bool]int{true: len(alone(charts.Base, shared))}[umbrella == charts.Umbrella]
		assert.Equal(t, len(every), len(most)+len(two)-parts)

		_, err = render(t, umbrella, values(t, shared))
		assert.ErrorContains(t, err, "enable a feature: --set budget.enabled=true, or all of them: --set tags.all=true. The features are budget, cloneset")
	}
}

// same asserts that objects are the same, one by one.
func same(t *testing.T, want, got []object) {
	t.Helper()
	expected, found := plain(t, want), plain(t, got)
	assert.Equal(t, slices.Sorted(maps.Keys(expected)), slices.Sorted(maps.Keys(found)))
	for id := range expected {
		if found[id] != nil {
			assert.Equal(t, expected[id], found[id], id)
		}
	}
}

// asFlotilla returns objects without what differs between the tools that apply them: who manages them, where settings are
// remembered, and what Helm leaves in the cluster.
func asFlotilla(objects []object) []object {
	var all []object
	for _, o := range objects {
		o = o.DeepCopy()
		labels, annotations := o.GetLabels(), o.GetAnnotations()
		if labels["app.kubernetes.io/managed-by"] == "Helm" {
			labels["app.kubernetes.io/managed-by"] = "flotilla"
			o.SetLabels(labels)
		}
		delete(annotations, install.SettingsAnnotation)
		if kind := o.GetKind(); kind == "CustomResourceDefinition" || kind == "Namespace" {
			delete(annotations, "helm.sh/resource-policy")
		}
		o.SetAnnotations(annotations)
		if len(annotations) == 0 {
			o.SetAnnotations(nil)
		}
		all = append(all, o)
	}
	return all
}

// versionless returns objects without the label of their version: those that features share have that of chart flotilla-base.
func versionless(objects []object) []object {
	for _, o := range objects {
		labels := o.GetLabels()
		delete(labels, "app.kubernetes.io/version")
		o.SetLabels(labels)
	}
	return objects
}
