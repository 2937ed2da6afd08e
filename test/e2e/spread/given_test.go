package spread

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"

	clonesets "github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/forecasts"
	"github.com/flotilla-project/flotilla/test/install"
	"github.com/flotilla-project/flotilla/test/story"
)

const app = "flotilla/demo-app:"

// kind is a kind of workloads: it returns one without content.
type kind func() client.Object

func deployments() client.Object  { return &appsv1.Deployment{} }
func replicaSets() client.Object  { return &appsv1.ReplicaSet{} }
func statefulSets() client.Object { return &appsv1.StatefulSet{} }
func cloneSets() client.Object    { return &clonesets.CloneSet{} }
func jobs() client.Object         { return &batchv1.Job{} }

// named returns how the cluster names the kind.
func (k kind) named(t *testing.T) schema.GroupVersionKind {
	t.Helper()
	named, err := world.Client.GroupVersionKindFor(k())
	require.NoError(t, err)
	return named
}

func meta(namespace string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: "web", Namespace: namespace}
}

// newWorkload returns a workload "web" of the kind.
func (k kind) newWorkload(t *testing.T, namespace string, replicas int32, template corev1.PodTemplateSpec) client.Object {
	t.Helper()
	spec := map[string]any{"replicas": replicas, "selector": metav1.LabelSelector{MatchLabels: template.Labels}}
	if k.named(t).Kind == "Job" {
		template.Spec.RestartPolicy = corev1.RestartPolicyNever
		spec = map[string]any{"parallelism": replicas, "completions": replicas}
	}
	spec["template"] = template
	version, name := k.named(t).ToAPIVersionAndKind()
	text, err := json.Marshal(map[string]any{"apiVersion": version, "kind": name, "metadata": meta(namespace), "spec": spec})
	require.NoError(t, err)
	o := k()
	require.NoError(t, json.Unmarshal(text, o))
	return o
}

// forKinds tells a story of workloads of each of the kinds.
func forKinds(t *testing.T, kinds []kind, tell func(*testing.T, kind)) {
	t.Helper()
	t.Parallel()
	for _, k := range kinds {
		t.Run(k.named(t).Kind, func(t *testing.T) {
			t.Parallel()
			tell(t, k)
		})
	}
}

// newTemplate returns a template of pods of the demo application.
func newTemplate() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main", Image: app + "v1"}}, TerminationGracePeriodSeconds: new(int64(1)),
		},
	}
}

// givenWorkload creates a workload of the kind.
func (k kind) givenWorkload(t *testing.T, namespace string, replicas int32) client.Object {
	t.Helper()
	o := k.newWorkload(t, namespace, replicas, newTemplate())
	require.NoError(t, world.Client.Create(t.Context(), o))
	return o
}

// scale changes the replicas of the workload.
func scale(t *testing.T, o client.Object, replicas int) {
	t.Helper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	require.NoError(t, world.Client.Patch(t.Context(), o, patch))
}

// scales changes the replicas of the workload, and waits until its pods are in the subsets. Those of a CloneSet come and go as its
// forecast says.
func scales(t *testing.T, spread *v1beta1.WorkloadSpread, o client.Object, replicas int32, want map[string]int) {
	t.Helper()
	set, isPlayed := o.(*clonesets.CloneSet)
	if !isPlayed {
		scale(t, o, int(replicas))
		settlesWith(t, spread, want)
		return
	}
	rollout := forecasts.Edit(t, world, set, func(set *clonesets.CloneSet) { set.Spec.Replicas = &replicas })
	settlesWith(t, spread, want)
	if losesPlaces(t, set.Namespace) { // and pods were deleted for it
		return
	}
	rollout.ComesTrue(t)
	pods := story.Active(world.Pods(t, set.Namespace))
	for _, subset := range rollout.Forecast.Subsets {
		n := 0
		for i := range pods {
			if subsetOf(t, &pods[i]) == subset.Name {
				n++
			}
		}
		assert.Equal(t, subset.Pods, n, "pods of subset %s", subset.Name)
	}
}

// givenSpread creates a WorkloadSpread "web" of workload "web", and waits until the operator knows it.
func (k kind) givenSpread(t *testing.T, namespace string, subsets []v1beta1.WorkloadSpreadSubset, change ...func(*v1beta1.WorkloadSpread)) *v1beta1.WorkloadSpread {
	t.Helper()
	version, name := k.named(t).ToAPIVersionAndKind()
	spread := &v1beta1.WorkloadSpread{ObjectMeta: meta(namespace), Spec: v1beta1.WorkloadSpreadSpec{
		TargetReference: &v1beta1.TargetReference{APIVersion: version, Kind: name, Name: "web"}, Subsets: subsets,
	}}
	for _, c := range change {
		c(spread)
	}
	require.NoError(t, world.Client.Create(t.Context(), spread))
	story.Reaches(t, world, spread, "known", func(spread *v1beta1.WorkloadSpread) error {
		return story.Want(spread.Status.ObservedGeneration == spread.Generation, "status is %+v", spread.Status)
	})
	return spread
}

// newSubset returns a subset on the nodes whose label has the name as its value, whose pods have a label with the name.
func newSubset(name, label string, limit *intstr.IntOrString) v1beta1.WorkloadSpreadSubset {
	subset := v1beta1.WorkloadSpreadSubset{Name: name, MaxReplicas: limit, RequiredNodeSelector: &corev1.NodeSelectorTerm{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: label, Operator: corev1.NodeSelectorOpIn, Values: []string{name}}},
	}}
	subset.Patch.Raw = fmt.Appendf(nil, `{"metadata":{"labels":{"subset":%q}}}`, name)
	return subset
}

// zones labels the first node with value a and the others with b until the end of the test, and returns the label's key,
// which no other test uses.
func zones(t *testing.T, namespace string) (key string) {
	t.Helper()
	key = "example.io/" + namespace
	for i, node := range world.Cluster.Nodes() {
		value := "b"
		if i == 0 {
			value = "a"
		}
		label(t, node.Name(), key, &value)
		t.Cleanup(func() { label(t, node.Name(), key, nil) })
	}
	return key
}

// label gives a node a label, and nil takes it off, also at the end of a test.
func label(t *testing.T, node, key string, value *string) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]*string{key: value}}})
	require.NoError(t, err)
	o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	require.NoError(t, world.Client.Patch(context.WithoutCancel(t.Context()), o, client.RawPatch(types.MergePatchType, patch)))
}

// settlesWith waits until exactly these pods, told by subset, zone and deletion cost, are ready, and the spread's status
// counts them. A busy server may lose the request for a pod whose place is taken already. Others go to later subsets
// meanwhile, and stay there: one of them is deleted then, and its successor takes the place.
func settlesWith(t *testing.T, spread *v1beta1.WorkloadSpread, want map[string]int) {
	t.Helper()
	story.Reaches(t, world, spread, fmt.Sprintf("pods %v", want), func(spread *v1beta1.WorkloadSpread) error {
		members := map[string]int32{}
		pods := story.Active(world.Pods(t, spread.Namespace))
		for i := range pods {
			members[subsetOf(t, &pods[i])]++
		}
		miscounted := slices.ContainsFunc(spread.Status.SubsetStatuses, func(s v1beta1.SubsetStatus) bool { return s.Replicas != members[s.Name] })
		problem := errors.Join(areReady(t, pods, want), story.Want(!miscounted, "status is %+v", spread.Status))
		if problem != nil && losesPlaces(t, spread.Namespace) {
			if extra := surplus(t, pods, want); extra != nil {
				return errors.Join(problem, world.Client.Delete(t.Context(), extra))
			}
		}
		return problem
	})
}

// losesPlaces reports whether places may have been taken for pods that did not appear: an event says so, for one place or
// several, or a creation has failed, or an operator has started again, which is the end of the requests that it had begun. Node
// agents create no pods.
func losesPlaces(t *testing.T, namespace string) bool {
	t.Helper()
	var events corev1.EventList
	require.NoError(t, world.Client.List(t.Context(), &events, client.InNamespace(namespace)))
	if slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return e.Reason == "CreatePodFailed" || e.Reason == "FailedCreate" }) {
		return true
	}
	return slices.ContainsFunc(world.Pods(t, install.Namespace), func(operator corev1.Pod) bool {
		owner := metav1.GetControllerOfNoCopy(&operator)
		return owner != nil && owner.Kind == "ReplicaSet" && slices.ContainsFunc(operator.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.RestartCount > 0 })
	})
}

// surplus returns a pod of which there is one too many while as many as wanted are ready, nil for none. A pod that is to be
// beyond the limit of its subset has no successor that would be: the controller marks it, in its own time.
func surplus(t *testing.T, pods []corev1.Pod, want map[string]int) *corev1.Pod {
	t.Helper()
	left, total := maps.Clone(want), 0
	for _, n := range want {
		total += n
	}
	var extra *corev1.Pod
	for i := range pods {
		kind := tell(t, &pods[i])
		if left[kind]--; left[kind] < 0 {
			extra = &pods[i]
		}
	}
	for kind, n := range left {
		if n > 0 && strings.Contains(kind, "cost -") {
			return nil
		}
	}
	if len(pods) != total || slices.ContainsFunc(pods, func(p corev1.Pod) bool { return !story.IsReady(&p) }) {
		return nil
	}
	return extra
}

// areReady returns nil if the pods are ready and those that are wanted.
func areReady(t *testing.T, pods []corev1.Pod, want map[string]int) error {
	t.Helper()
	got := map[string]int{}
	for i := range pods {
		if !story.IsReady(&pods[i]) {
			return fmt.Errorf("pod %s is not ready", pods[i].Name)
		}
		got[tell(t, &pods[i])]++
	}
	return story.Want(maps.Equal(got, want), "pods are %v", got)
}

// tell describes a pod by its subset, the zone of its node, and its deletion cost.
func tell(t *testing.T, o *corev1.Pod) string {
	t.Helper()
	zone := "zone b"
	if o.Spec.NodeName == world.Cluster.Nodes()[0].Name() {
		zone = "zone a"
	}
	text := subsetOf(t, o) + " in " + zone
	if cost := o.Annotations[contract.PodDeletionCostAnnotation]; cost != "" {
		text += ", cost " + cost
	}
	return text
}

func subsetOf(t *testing.T, o *corev1.Pod) string {
	t.Helper()
	var match v1beta1.Match
	if text, ok := o.Annotations[v1beta1.MatchedAnnotation]; ok {
		require.NoError(t, json.Unmarshal([]byte(text), &match))
	}
	return match.Subset
}
