package setup

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/testing/await"

	"github.com/flotilla-project/flotilla/spread/api/v1alpha1"
	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/featuregates"
	"github.com/flotilla-project/flotilla/spread/internal/subsets"
)

func inZone(zone string) *corev1.NodeSelectorTerm {
	return &corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{zone}},
	}}
}

func oldSpread(namespace, name string) *v1alpha1.WorkloadSpread {
	s := &v1alpha1.WorkloadSpread{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	s.Spec.TargetReference = &v1alpha1.TargetReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name}
	s.Spec.Subsets = []v1alpha1.WorkloadSpreadSubset{{Name: "a", RequiredNodeSelectorTerm: inZone("a")}}
	return s
}

// newSpread spreads ReplicaSet web: up to so many pods in zone a, the others in zone b.
func newSpread(namespace string, first intstr.IntOrString) *v1beta1.WorkloadSpread {
	s := &v1beta1.WorkloadSpread{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	s.Spec.TargetReference = &v1beta1.TargetReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web"}
	s.Spec.Subsets = []v1beta1.WorkloadSpreadSubset{
		{Name: "a", RequiredNodeSelector: inZone("a"), MaxReplicas: &first}, {Name: "b", RequiredNodeSelector: inZone("b")},
	}
	return s
}

func template() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "app:1"}}},
	}
}

func newReplicaSet(namespace string, replicas int32) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}, Spec: appsv1.ReplicaSetSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, Template: template(),
	}}
}

// podOf is a pod as the ReplicaSet's controller creates it.
func podOf(owner *appsv1.ReplicaSet) *corev1.Pod {
	t := template()
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: owner.Namespace, GenerateName: owner.Name + "-", Labels: t.Labels,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))},
	}, Spec: t.Spec}
}

func subsetOf(pod *corev1.Pod) string {
	m, _ := subsets.MatchOf(pod)
	return m.Subset
}

// create creates so many pods at the same time and returns how many each subset has got.
func create(t *testing.T, c client.Client, owner *appsv1.ReplicaSet, n int) map[string]int {
	t.Helper()
	var mu sync.Mutex
	got := map[string]int{}
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			pod := podOf(owner)
			err := c.Create(t.Context(), pod)
			mu.Lock()
			defer mu.Unlock()
			if assert.NoError(t, err) {
				got[subsetOf(pod)]++
				assert.Equal(t, subsetOf(pod) != "", pod.Annotations[contract.PodDeletionCostAnnotation] != "", "its cost comes with its subset")
			}
		})
	}
	all.Wait()
	return got
}

// settled waits until the status counts the pods of both subsets, as "replicas/missing".
func settled(t testing.TB, c client.Client, s *v1beta1.WorkloadSpread, want string) {
	t.Helper()
	await.Until(t, func(check *assert.CollectT) {
		require.NoError(check, c.Get(t.Context(), client.ObjectKeyFromObject(s), s))
		require.Len(check, s.Status.SubsetStatuses, 2)
		a, b := s.Status.SubsetStatuses[0], s.Status.SubsetStatuses[1]
		assert.Equal(check, want, fmt.Sprintf("%d/%d %d/%d", a.Replicas, a.MissingReplicas, b.Replicas, b.MissingReplicas))
		assert.Equal(check, s.Generation, s.Status.ObservedGeneration)
		for _, entry := range s.Status.VersionedSubsetStatuses[v1beta1.VersionIgnored] {
			assert.Empty(check, entry.CreatingPods)
			assert.Empty(check, entry.DeletingPods)
		}
	})
}

func podsOf(t *testing.T, c client.Client, namespace string) []corev1.Pod {
	t.Helper()
	var list corev1.PodList
	require.NoError(t, c.List(t.Context(), &list, client.InNamespace(namespace)))
	return list.Items
}

func costs(ctx context.Context, check *assert.CollectT, c client.Client, namespace string) map[string]int {
	var list corev1.PodList
	require.NoError(check, c.List(ctx, &list, client.InNamespace(namespace)))
	got := map[string]int{}
	for i := range list.Items {
		got[subsetOf(&list.Items[i])+" "+list.Items[i].Annotations[contract.PodDeletionCostAnnotation]]++
	}
	return got
}

func TestPodsAreSpread(t *testing.T) {
	c := serve(t)
	namespace := env.Namespace(t)
	owner, s := newReplicaSet(namespace, 40), newSpread(namespace, intstr.FromInt32(10))
	require.NoError(t, c.Create(t.Context(), owner))
	require.NoError(t, c.Create(t.Context(), s))
	settled(t, c, s, "0/10 0/-1")

	assert.Equal(t, map[string]int{"a": 10, "b": 30}, create(t, c, owner, 40))
	settled(t, c, s, "10/0 30/-1")
	await.Until(t, func(check *assert.CollectT) {
		assert.Equal(check, map[string]int{"a 200": 10, "b 100": 30}, costs(t.Context(), check, c, namespace))
	})
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		columns, rows := env.Table(t, schema.GroupVersionResource{Group: contract.AppsGroup, Version: version, Resource: "workloadspreads"}, namespace)
		assert.Equal(t, []string{"Name", "WorkloadName", "WorkloadKind", "Adaptive", "Subsets", "Age", "Reason", "Message"}, columns)
		require.Len(t, rows, 1)
		assert.Equal(t, []any{"web", "web", "ReplicaSet", nil, "a 10/10, b 30"}, rows[0][:5])
	}
	for _, pod := range podsOf(t, c, namespace) {
		terms := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
		assert.Equal(t, []corev1.NodeSelectorTerm{*inZone(subsetOf(&pod))}, terms)
	}

	// The successor of a deleted pod takes its place at once.
	for _, pod := range podsOf(t, c, namespace) {
		if subsetOf(&pod) == "a" {
			require.NoError(t, c.Delete(t.Context(), &pod, client.GracePeriodSeconds(0)))
			assert.Equal(t, map[string]int{"a": 1}, create(t, c, owner, 1))
			break
		}
	}
	settled(t, c, s, "10/0 30/-1")

	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(s), s))
	s.Spec.Subsets[0].MaxReplicas = new(intstr.FromInt32(4))
	require.NoError(t, c.Update(t.Context(), s))
	settled(t, c, s, "10/0 30/-1")
	await.Until(t, func(check *assert.CollectT) {
		assert.Equal(check, map[string]int{"a 200": 4, "a -100": 6, "b 100": 30}, costs(t.Context(), check, c, namespace))
	})
	assert.Never(t, func() bool {
		now := &v1beta1.WorkloadSpread{}
		return c.Get(t.Context(), client.ObjectKeyFromObject(s), now) == nil && now.ResourceVersion != s.ResourceVersion
	}, time.Second, 100*time.Millisecond, "nothing is left to do")
}

func TestPercentagesFollowTheReplicas(t *testing.T) {
	c := serve(t)
	namespace := env.Namespace(t)
	owner, s := newReplicaSet(namespace, 4), newSpread(namespace, intstr.FromString("50%"))
	require.NoError(t, c.Create(t.Context(), s))
	settled(t, c, s, "0/0 0/-1")
	require.NoError(t, c.Create(t.Context(), owner))
	settled(t, c, s, "0/2 0/-1")
	assert.Equal(t, map[string]int{"a": 2, "b": 2}, create(t, c, owner, 4))
	owner.Spec.Replicas = new(int32(8))
	require.NoError(t, c.Update(t.Context(), owner))
	settled(t, c, s, "2/2 2/-1")
	assert.Equal(t, map[string]int{"a": 2, "b": 2}, create(t, c, owner, 4))
}

// I-WS-4: neither admission nor the controller touches a pod of another workload, whatever its annotations say.
func TestPodsOfOthersAreLeftAlone(t *testing.T) {
	c := serve(t)
	namespace := env.Namespace(t)
	node := givenNode(t, c, namespace, "a")
	owner, s := newReplicaSet(namespace, 1), newSpread(namespace, intstr.FromInt32(1))
	other := newReplicaSet(namespace, 1)
	other.Name = "other"
	for _, o := range []client.Object{owner, other, s} {
		require.NoError(t, c.Create(t.Context(), o))
	}
	bare := podOf(owner)
	bare.OwnerReferences = nil
	require.NoError(t, c.Create(t.Context(), bare))
	assert.Nil(t, bare.Spec.Affinity)
	foreign := podOf(other)
	require.NoError(t, c.Create(t.Context(), foreign))
	assert.Nil(t, foreign.Spec.Affinity)
	orphan := podOf(&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "gone", UID: "gone"}})
	require.NoError(t, c.Create(t.Context(), orphan), "an owner that is gone")

	dry := podOf(owner)
	require.NoError(t, c.Create(t.Context(), dry, client.DryRunAll))
	assert.Empty(t, subsetOf(dry))

	pretender := podOf(other)
	pretender.Spec.NodeName = node
	pretender.Annotations = map[string]string{v1beta1.MatchedAnnotation: `{"name":"web","subset":"a"}`}
	require.NoError(t, c.Create(t.Context(), pretender))
	before := podsOf(t, c, namespace)
	mine := podOf(owner)
	mine.Spec.NodeName = node
	require.NoError(t, c.Create(t.Context(), mine))
	settled(t, c, s, "1/0 0/-1")
	await.Until(t, func(check *assert.CollectT) {
		assert.Equal(check, 1, costs(t.Context(), check, c, namespace)["a 200"])
	})
	after := podsOf(t, c, namespace)
	assert.Subset(t, after, before)
}

func TestAdaptiveMovesPodsAndComesBack(t *testing.T) {
	c := serving(t, features.Defaults(featuregates.All()...), func(s *settings) { s.pause = 7 * time.Second })
	namespace := env.Namespace(t)
	owner, s := newReplicaSet(namespace, 2), newSpread(namespace, intstr.FromInt32(2))
	s.Spec.ScheduleStrategy = v1beta1.WorkloadSpreadScheduleStrategy{
		Type: v1beta1.AdaptiveStrategy, Adaptive: &v1beta1.AdaptiveSettings{RescheduleCriticalSeconds: new(int32(1))},
	}
	require.NoError(t, c.Create(t.Context(), owner))
	require.NoError(t, c.Create(t.Context(), s))
	settled(t, c, s, "0/2 0/-1")
	pod := podOf(owner)
	require.NoError(t, c.Create(t.Context(), pod))
	assert.Equal(t, "a", subsetOf(pod))
	pod.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available",
		LastTransitionTime: metav1.Now(),
	}}
	require.NoError(t, c.Status().Update(t.Context(), pod))
	await.Until(t, func(check *assert.CollectT) {
		assert.True(check, apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(pod), &corev1.Pod{})))
	})
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(s), s))
	closed := meta.FindStatusCondition(s.Status.SubsetStatuses[0].Conditions, v1beta1.SubsetSchedulable)
	assert.Equal(t, v1beta1.ReasonPodUnschedulable, closed.Reason)
	assert.Equal(t, "pod "+pod.Name+" is unschedulable: 0/3 nodes are available", closed.Message)
	assert.Equal(t, map[string]int{"b": 1}, create(t, c, owner, 1))

	await.Until(t, func(check *assert.CollectT) {
		require.NoError(check, c.Get(t.Context(), client.ObjectKeyFromObject(s), s))
		assert.True(check, meta.IsStatusConditionTrue(s.Status.VersionedSubsetStatuses[v1beta1.VersionIgnored][0].Conditions, v1beta1.SubsetSchedulable))
	})
	assert.Equal(t, map[string]int{"a": 1}, create(t, c, owner, 1))
}

// givenNode creates a node in a zone that no other test uses, and returns its name.
func givenNode(t *testing.T, c client.Client, namespace, zone string) (name string) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: namespace + "-" + zone, Labels: map[string]string{"zone": zone}}}
	require.NoError(t, c.Create(t.Context(), node))
	node.Spec.Taints = nil // the API server marks new nodes as not ready
	require.NoError(t, c.Update(t.Context(), node))
	return node.Name
}

func TestRunningPodsAreTakenIn(t *testing.T) {
	c := serve(t)
	namespace := env.Namespace(t)
	for _, zone := range []string{"a", "b"} {
		givenNode(t, c, namespace, zone)
	}
	owner := newReplicaSet(namespace, 4)
	require.NoError(t, c.Create(t.Context(), owner))
	for i := range 4 {
		pod := podOf(owner)
		pod.Spec.NodeName = namespace + "-" + map[bool]string{true: "a", false: "b"}[i < 3]
		require.NoError(t, c.Create(t.Context(), pod))
	}
	s := newSpread(namespace, intstr.FromInt32(2))
	s.Spec.Subsets[0].Patch.Raw = []byte(`{"metadata":{"labels":{"subset":"a"}}}`)
	require.NoError(t, c.Create(t.Context(), s))
	settled(t, c, s, "3/0 1/-1")
	await.Until(t, func(check *assert.CollectT) {
		assert.Equal(check, map[string]int{"a 200": 2, "a -100": 1, "b 100": 1}, costs(t.Context(), check, c, namespace))
	})
	var labelled corev1.PodList
	require.NoError(t, c.List(t.Context(), &labelled, client.InNamespace(namespace), client.MatchingLabels{"subset": "a"}))
	assert.Len(t, labelled.Items, 3)
}

func TestBothVersionsMeanTheSame(t *testing.T) {
	c := serve(t)
	namespace := env.Namespace(t)
	old := oldSpread(namespace, "web")
	require.NoError(t, c.Create(t.Context(), old))
	s := &v1beta1.WorkloadSpread{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(old), s))
	assert.Equal(t, inZone("a"), s.Spec.Subsets[0].RequiredNodeSelector)

	owner := newReplicaSet(namespace, 1)
	require.NoError(t, c.Create(t.Context(), owner))
	await.Until(t, func(check *assert.CollectT) {
		pod := podOf(owner)
		require.NoError(check, c.Create(t.Context(), pod))
		assert.Equal(check, "a", subsetOf(pod))
	})

	wrong := oldSpread(namespace, "wrong")
	wrong.Spec.Subsets[0].RequiredNodeSelectorTerm.MatchExpressions[0].Operator = corev1.NodeSelectorOpExists
	err := c.Create(t.Context(), wrong)
	assert.True(t, apierrors.IsInvalid(err), err)
	require.ErrorContains(t, err, "spec.subsets[0].requiredNodeSelectorTerm.matchExpressions[0]")

	double := oldSpread(namespace, "double")
	double.Spec.TargetReference.Name = "web"
	await.Until(t, func(check *assert.CollectT) {
		assert.ErrorContains(check, c.Create(t.Context(), double, client.DryRunAll), "WorkloadSpread web has the same target")
	})
}

func TestTheKindIsForbiddenWithoutItsGate(t *testing.T) {
	c := serving(t, features.Defaults(featuregates.All()...).With(featuregates.WorkloadSpread, false))
	await.Until(t, func(check *assert.CollectT) {
		err := c.Create(t.Context(), newSpread("default", intstr.FromInt32(1)), client.DryRunAll)
		assert.True(check, apierrors.IsForbidden(err), err)
		assert.ErrorContains(check, err, "feature-gate WorkloadSpread is not enabled")
	})
}
