package argocd_test

import (
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	budgetv1alpha1 "github.com/flotilla-project/flotilla/budget/api/v1alpha1"
	budgetv1beta1 "github.com/flotilla-project/flotilla/budget/api/v1beta1"
	clonesetv1alpha1 "github.com/flotilla-project/flotilla/cloneset/api/v1alpha1"
	clonesetv1beta1 "github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	daemonv1alpha1 "github.com/flotilla-project/flotilla/daemon/api/v1alpha1"
	daemonv1beta1 "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	daemonsetv1alpha1 "github.com/flotilla-project/flotilla/daemonset/api/v1alpha1"
	daemonsetv1beta1 "github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
	jobsv1alpha1 "github.com/flotilla-project/flotilla/jobs/api/v1alpha1"
	jobsv1beta1 "github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/kustomize"
	"github.com/flotilla-project/flotilla/kustomize/render"
	spreadv1alpha1 "github.com/flotilla-project/flotilla/spread/api/v1alpha1"
	spreadv1beta1 "github.com/flotilla-project/flotilla/spread/api/v1beta1"
	statefulsetv1alpha1 "github.com/flotilla-project/flotilla/statefulset/api/v1alpha1"
	statefulsetv1beta1 "github.com/flotilla-project/flotilla/statefulset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/argocd"
)

// types make an empty object of a kind in a version.
func types(kind, version string) any {
	return map[string]any{
		"CloneSet v1alpha1": new(clonesetv1alpha1.CloneSet), "CloneSet v1beta1": new(clonesetv1beta1.CloneSet),
		"StatefulSet v1alpha1": new(statefulsetv1alpha1.StatefulSet), "StatefulSet v1beta1": new(statefulsetv1beta1.StatefulSet),
		"DaemonSet v1alpha1": new(daemonsetv1alpha1.DaemonSet), "DaemonSet v1beta1": new(daemonsetv1beta1.DaemonSet),
		"NodeImage v1alpha1": new(daemonv1alpha1.NodeImage), "NodeImage v1beta1": new(daemonv1beta1.NodeImage),
		"ContainerRecreateRequest v1alpha1": new(daemonv1alpha1.ContainerRecreateRequest),
		"ContainerRecreateRequest v1beta1":  new(daemonv1beta1.ContainerRecreateRequest),
		"BroadcastJob v1alpha1":             new(jobsv1alpha1.BroadcastJob), "BroadcastJob v1beta1": new(jobsv1beta1.BroadcastJob),
		"AdvancedCronJob v1alpha1": new(jobsv1alpha1.AdvancedCronJob), "AdvancedCronJob v1beta1": new(jobsv1beta1.AdvancedCronJob),
		"ImagePullJob v1alpha1": new(jobsv1alpha1.ImagePullJob), "ImagePullJob v1beta1": new(jobsv1beta1.ImagePullJob),
		"ImageListPullJob v1alpha1": new(jobsv1alpha1.ImageListPullJob), "ImageListPullJob v1beta1": new(jobsv1beta1.ImageListPullJob),
		"WorkloadSpread v1alpha1": new(spreadv1alpha1.WorkloadSpread), "WorkloadSpread v1beta1": new(spreadv1beta1.WorkloadSpread),
		"PodUnavailableBudget v1alpha1": new(budgetv1alpha1.PodUnavailableBudget), "PodUnavailableBudget v1beta1": new(budgetv1beta1.PodUnavailableBudget),
	}[kind+" "+version]
}

// customizations reads the customizations of the work tree.
func customizations(t *testing.T) []argocd.Customization {
	t.Helper()
	all, err := argocd.Customizations(os.DirFS("../../kustomize/argocd/resource_customizations"))
	require.NoError(t, err)
	require.Len(t, all, 11)
	return all
}

// decoded returns an object of a test as Argo CD reads it.
func decoded(t *testing.T, c argocd.Customization, name string) map[string]any {
	t.Helper()
	var object map[string]any
	require.NoError(t, c.Decode(name, &object))
	assert.Equal(t, c.Kind.Kind, object["kind"])
	return object
}

// exists fails unless the kind of a customization has the fields of an object in that version.
func exists(kind, version string, object map[string]any) error {
	text, err := yaml.Marshal(object)
	if err != nil {
		return err
	}
	return yaml.UnmarshalStrict(text, types(kind, version))
}

// The tests that Argo CD's repository runs for each folder. Objects without fields of one version have the same health in the
// other version.
func TestHealth(t *testing.T) {
	for _, c := range customizations(t) {
		var all argocd.HealthTests
		require.NoError(t, c.Decode("health_test.yaml", &all))
		tested, versions := []string{}, map[string]int{}
		for _, test := range all.Tests {
			tested = append(tested, test.InputPath)
			t.Run(c.Kind.Kind+" "+test.InputPath, func(t *testing.T) {
				object := decoded(t, c, test.InputPath)
				_, own, _ := strings.Cut(object["apiVersion"].(string), "/")
				require.NoError(t, exists(c.Kind.Kind, own, object))
				for _, version := range []string{"v1alpha1", "v1beta1"} {
					if version != own && exists(c.Kind.Kind, version, object) != nil {
						continue
					}
					object["apiVersion"] = c.Kind.Group + "/" + version
					got, err := argocd.Evaluate(c.Health, object)
					require.NoError(t, err)
					assert.Equal(t, test.HealthStatus, got, version)
					versions[version]++
				}
			})
		}
		assert.Contains(t, tested, "testdata/terminating.yaml", "Argo CD has one for each kind")
		assert.ElementsMatch(t, files(t, c, "testdata/*.yaml"), tested, "each object is used once")
		assert.Len(t, versions, 2, c.Kind)
	}
}

func files(t *testing.T, c argocd.Customization, pattern string) []string {
	t.Helper()
	found, err := fs.Glob(c.Folder, pattern)
	require.NoError(t, err)
	return found
}

// Workloads have the same conditions and the same fields of their strategies.
func TestWorkloadsShareTheirScripts(t *testing.T) {
	byKind := map[string]argocd.Customization{}
	for _, c := range customizations(t) {
		byKind[c.Kind.Kind] = c
	}
	for _, kind := range []string{"StatefulSet", "DaemonSet"} {
		assert.Equal(t, byKind["CloneSet"].Health, byKind[kind].Health, kind)
		assert.Equal(t, byKind["CloneSet"].Actions, byKind[kind].Actions, kind)
	}
}

// An object that is deleted without finalizers has nothing to wait for.
func TestObjectsWithoutFinalizers(t *testing.T) {
	for _, c := range customizations(t) {
		object := decoded(t, c, "testdata/terminating.yaml")
		delete(object["metadata"].(map[string]any), "finalizers")
		got, err := argocd.Evaluate(c.Health, object)
		require.NoError(t, err)
		assert.Equal(t, argocd.Health{Status: "Progressing", Message: "Pending deletion"}, got, c.Kind)
	}
}

// Users of kubectl and Helm have the scripts as one patch.
func TestThePatchHasTheScripts(t *testing.T) {
	all := customizations(t)
	shipped, err := kustomize.Files.ReadFile("argocd/health.yaml")
	require.NoError(t, err)
	assert.Equal(t, argocd.ConfigMap(all), string(shipped), "make generate")
	checks, err := argocd.Checks()
	require.NoError(t, err)
	actions, err := argocd.AllActions()
	require.NoError(t, err)
	for _, c := range all {
		assert.Equal(t, c.Health, checks[c.Kind], c.Kind)
		if c.Actions != nil {
			assert.Equal(t, *c.Actions, actions[c.Kind], c.Kind)
		}
	}
	assert.Len(t, actions, 3)
}

// The component adds the checks to an Argo CD that is installed with kustomize, and keeps the other keys of its
// ConfigMap.
func TestTheComponentAddsTheChecks(t *testing.T) {
	tree, err := render.NewTree(map[string]fs.FS{
		"kustomize": kustomize.Files,
		"mine": fstest.MapFS{
			"kustomization.yaml": {Data: []byte("resources: [argocd.yaml]\ncomponents: [../kustomize/argocd]\n")},
			"argocd.yaml":        {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: argocd-cm, namespace: argocd}\ndata: {url: https://argocd.example}\n")},
		},
	})
	require.NoError(t, err)
	var renderer render.Renderer
	manifests, err := renderer.Build(tree, "mine")
	require.NoError(t, err)
	var built corev1.ConfigMap
	require.NoError(t, yaml.UnmarshalStrict(manifests, &built))
	checks, err := argocd.Checks()
	require.NoError(t, err)
	require.Len(t, checks, 11)
	want := map[string]string{"url": "https://argocd.example"}
	for kind, script := range checks {
		want["resource.customizations.health."+kind.Group+"_"+kind.Kind] = script
	}
	assert.Equal(t, "argocd", built.Namespace)
	assert.Subset(t, built.Data, want)
	assert.Contains(t, built.Data, "resource.customizations.actions.apps.kruise.io_CloneSet")
}
