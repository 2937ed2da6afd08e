package operations

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/kustomize/catalog"

	"github.com/flotilla-project/flotilla/test/story"
)

//go:embed testdata
var manifests embed.FS

// features are those that can be installed.
var features = sync.OnceValues(catalog.Features)

// chosen returns the features that a condition holds for, by name.
func chosen(t *testing.T, wanted func(catalog.Feature) bool) []string {
	t.Helper()
	found, err := features()
	require.NoError(t, err)
	var names []string
	for _, feature := range found {
		if wanted(feature) {
			names = append(names, feature.Name)
		}
	}
	require.NotEmpty(t, names)
	return names
}

func all(t *testing.T) []string {
	t.Helper()
	return chosen(t, func(catalog.Feature) bool { return true })
}

func workloads(t *testing.T) []string {
	t.Helper()
	return chosen(t, func(f catalog.Feature) bool { return f.Workload })
}

func helpers(t *testing.T) []string {
	t.Helper()
	return chosen(t, func(f catalog.Feature) bool { return !f.Workload })
}

// storyOf returns what a user does with a feature where no other one is installed: a workload is updated, and others have a
// story of their own.
func storyOf(t *testing.T, feature string) func(*testing.T) {
	t.Helper()
	if slices.Contains(workloads(t), feature) {
		return updates(feature)
	}
	story, found := map[string]func(*testing.T){
		"jobs":   runsOnEveryNode,
		"daemon": startsByPriority,
		"spread": fillsSubsets,
		"budget": refusesEvictions,
	}[feature]
	require.True(t, found, "feature %s has no story", feature)
	return story
}

// Each feature has a story, and says what it needs for it.
func TestEachFeatureHasAStory(t *testing.T) {
	for _, feature := range all(t) {
		storyOf(t, feature)
		read(t, feature)
		assert.Contains(t, needed(), feature)
	}
	assert.Len(t, needed(), len(all(t)))
}

// tell tells the stories of the features, all at the same time.
func tell(t *testing.T, features ...string) {
	t.Helper()
	t.Run("stories", func(t *testing.T) {
		for _, feature := range features {
			t.Run(feature, func(t *testing.T) {
				t.Parallel()
				storyOf(t, feature)(t)
			})
		}
	})
}

// given creates the object of the file in the namespace. Webhooks are called some time after their manager is ready.
func given(t *testing.T, namespace, file string) *unstructured.Unstructured {
	t.Helper()
	o := read(t, file)
	o.SetNamespace(namespace)
	story.Eventually(t, "a "+o.GetKind(), func(ctx context.Context) error { return world.Client.Create(ctx, o) })
	return o
}

func read(t *testing.T, file string) *unstructured.Unstructured {
	t.Helper()
	text, err := manifests.ReadFile("testdata/" + file + ".yaml")
	require.NoError(t, err)
	o := &unstructured.Unstructured{}
	require.NoError(t, yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096).Decode(o))
	return o
}

// updates returns the story of a set of the feature.
func updates(feature string) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		updatesInPlace(t, given(t, world.Namespace(t), feature))
	}
}

// updatesInPlace changes the image of a set, whose pods stay the same.
func updatesInPlace(t *testing.T, set *unstructured.Unstructured) {
	t.Helper()
	isReady(t, set)
	before := world.Pods(t, set.GetNamespace())
	require.Len(t, before, nodes)
	setImage(t, set, "app:v2")
	after := world.Pods(t, set.GetNamespace())
	assert.Equal(t, story.Identities(before), story.Identities(after))
	assert.Equal(t, slices.Repeat([]string{"app:v2"}, len(after)), story.Images(after))
}

func isReady(t *testing.T, set *unstructured.Unstructured) {
	t.Helper()
	story.Reaches(t, world, set, "ready", func(set *unstructured.Unstructured) error {
		observed, _, _ := unstructured.NestedInt64(set.Object, "status", "observedGeneration")
		ready := story.Condition(set, "Ready")
		return story.Want(observed == set.GetGeneration() && ready.Status == "True", "it is %+v", ready)
	})
}

func setImage(t *testing.T, set *unstructured.Unstructured, image string) {
	t.Helper()
	story.Edit(t, world, set, func(set *unstructured.Unstructured) {
		containers := []any{map[string]any{"name": "main", "image": image}}
		require.NoError(t, unstructured.SetNestedSlice(set.Object, containers, "spec", "template", "spec", "containers"))
	})
	isReady(t, set)
}

// field waits until the field of the object's status has the value.
func field(t *testing.T, o *unstructured.Unstructured, want any, path ...string) {
	t.Helper()
	story.Reaches(t, world, o, strings.Join(path, "."), func(o *unstructured.Unstructured) error {
		got, _, err := unstructured.NestedFieldNoCopy(o.Object, append([]string{"status"}, path...)...)
		return errors.Join(err, story.Want(got == want, "status is %v", o.Object["status"]))
	})
}

func runsOnEveryNode(t *testing.T) {
	t.Helper()
	job := given(t, world.Namespace(t), "jobs")
	field(t, job, "completed", "phase")
	field(t, job, int64(nodes), "succeeded")
}

// startsByPriority sees a pod that waits for its second container, and the list of each node's images.
func startsByPriority(t *testing.T) {
	t.Helper()
	o := given(t, world.Namespace(t), "daemon")
	pod := &corev1.Pod{}
	require.NoError(t, world.Client.Get(t.Context(), client.ObjectKeyFromObject(o), pod))
	barrier := slices.ContainsFunc(pod.Spec.Containers[0].Env, func(e corev1.EnvVar) bool { return e.Name == contract.ContainerBarrierEnv })
	assert.True(t, barrier, "the webhook has not seen the pod: %v", pod.Spec.Containers[0].Env)
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("apps.kruise.io/v1beta1")
	list.SetKind("NodeImageList")
	story.Eventually(t, "a NodeImage for every node", func(ctx context.Context) error {
		err := world.Client.List(ctx, list)
		return errors.Join(err, story.Want(len(list.Items) == nodes, "there are %d", len(list.Items)))
	})
}

func fillsSubsets(t *testing.T) {
	t.Helper()
	spread := given(t, world.Namespace(t), "spread")
	field(t, spread, spread.GetGeneration(), "observedGeneration")
	given(t, spread.GetNamespace(), "deployment")
	story.Eventually(t, "pods in both subsets", func(context.Context) error {
		count := map[string]int{}
		for _, o := range world.Pods(t, spread.GetNamespace()) {
			count[o.Labels["subset"]]++
		}
		return story.Want(count["some"] == 3 && count["others"] == 1, "pods are %v", count)
	})
}

func refusesEvictions(t *testing.T) {
	t.Helper()
	namespace := world.Namespace(t)
	field(t, given(t, namespace, "deployment"), int64(4), "availableReplicas")
	budget := given(t, namespace, "budget")
	field(t, budget, int64(4), "currentAvailable")
	pod := world.Pods(t, namespace)[0]
	evict := func(ctx context.Context) error {
		return world.Client.SubResource("eviction").Create(ctx, &pod, &policyv1.Eviction{})
	}
	story.Eventually(t, "a refusal", func(ctx context.Context) error {
		err := world.Client.SubResource("eviction").Create(ctx, &pod, &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}})
		return story.Want(apierrors.IsTooManyRequests(err), "the answer is %v", err)
	})
	assert.True(t, apierrors.IsTooManyRequests(evict(t.Context())))
	story.Edit(t, world, budget, func(budget *unstructured.Unstructured) {
		require.NoError(t, unstructured.SetNestedField(budget.Object, int64(1), "spec", "maxUnavailable"))
	})
	story.Eventually(t, "the eviction", evict)
}
