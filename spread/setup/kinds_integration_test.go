package setup

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
)

// newPod is a pod that an object of the kind controls.
func newPod(owner client.Object, kind metav1.TypeMeta, name string, labels map[string]string) *corev1.Pod {
	t := template()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: owner.GetNamespace(), Name: name, Labels: labels}, Spec: t.Spec}
	if name == "" {
		pod.GenerateName = owner.GetName() + "-"
	}
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, kind.GroupVersionKind())}
	return pod
}

// workload is an object web of a kind of which only the metadata is known here.
func workload(t *testing.T, namespace string, kind metav1.TypeMeta, spec string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"spec": testenv.Fields(t, spec)}}
	o.SetGroupVersionKind(kind.GroupVersionKind())
	o.SetNamespace(namespace)
	o.SetName("web")
	return o
}

// spreadOf spreads a workload web of the kind: so many pods in zone a, the others in zone b.
func spreadOf(namespace string, kind metav1.TypeMeta, first int32) *v1beta1.WorkloadSpread {
	s := newSpread(namespace, intstr.FromInt32(first))
	s.Spec.TargetReference.APIVersion, s.Spec.TargetReference.Kind = kind.APIVersion, kind.Kind
	return s
}

// The number of a pod decides, counted from ordinals.start, and nothing is written.
func TestStatefulSetsAreSpreadByOrdinal(t *testing.T) {
	c := serve(t)
	namespace, kind := env.Namespace(t), metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}, Spec: appsv1.StatefulSetSpec{
		Replicas: new(int32(3)), Template: template(), Ordinals: &appsv1.StatefulSetOrdinals{Start: 5},
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
	}}
	s := spreadOf(namespace, kind, 2)
	require.NoError(t, c.Create(t.Context(), set))
	require.NoError(t, c.Create(t.Context(), s))
	for ordinal, want := range map[int]string{7: "b", 6: "a", 5: "a"} {
		pod := newPod(set, kind, fmt.Sprint("web-", ordinal), map[string]string{"app": "web"})
		require.NoError(t, c.Create(t.Context(), pod))
		assert.Equal(t, want, subsetOf(pod), pod.Name)
		assert.NotContains(t, pod.Annotations[v1beta1.MatchedAnnotation], "uid")
	}
	settled(t, c, s, "2/0 1/-1")
	for _, pod := range podsOf(t, c, namespace) {
		assert.NotContains(t, pod.Annotations, contract.PodDeletionCostAnnotation, "it scales in by ordinal")
	}
}

// Numbers that an Advanced StatefulSet reserves are left out of the count.
func TestReservedOrdinalsAreLeftOut(t *testing.T) {
	c := serve(t)
	namespace, kind := env.Namespace(t), metav1.TypeMeta{APIVersion: "apps.kruise.io/v1beta1", Kind: "StatefulSet"}
	set := workload(t, namespace, kind, `{replicas: 4, reserveOrdinals: [1, "3-4"]}`)
	s := spreadOf(namespace, kind, 2)
	require.NoError(t, c.Create(t.Context(), set))
	require.NoError(t, c.Create(t.Context(), s))
	create := func(ordinal int) *corev1.Pod {
		pod := newPod(set, kind, fmt.Sprint("web-", ordinal), map[string]string{"app": "web"})
		require.NoError(t, c.Create(t.Context(), pod))
		return pod
	}
	for ordinal, want := range map[int]string{6: "b", 5: "b", 2: "a", 0: "a"} {
		assert.Equal(t, want, subsetOf(create(ordinal)), ordinal)
	}
	settled(t, c, s, "2/0 2/-1")

	testenv.Edit(t, c, set, func(set *unstructured.Unstructured) {
		require.NoError(t, unstructured.SetNestedSlice(set.Object, []any{int64(0), int64(1), int64(2)}, "spec", "reserveOrdinals"))
	})
	await.Until(t, func(check *assert.CollectT) { // its cache may be behind
		pod := create(4)
		assert.Equal(check, "a", subsetOf(pod))
		require.NoError(t, c.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
	})
}

// Pods of a Job that have finished make room.
func TestFinishedPodsOfJobsMakeRoom(t *testing.T) {
	c := serve(t)
	namespace, kind := env.Namespace(t), metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}, Spec: batchv1.JobSpec{
		Parallelism: new(int32(2)), Completions: new(int32(4)), Template: template(),
	}}
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	s := spreadOf(namespace, kind, 1)
	require.NoError(t, c.Create(t.Context(), job))
	require.NoError(t, c.Create(t.Context(), s))
	subset := func() (*corev1.Pod, string) {
		pod := newPod(job, kind, "", nil)
		require.NoError(t, c.Create(t.Context(), pod))
		return pod, subsetOf(pod)
	}
	first, got := subset()
	assert.Equal(t, "a", got)
	_, got = subset()
	assert.Equal(t, "b", got)
	settled(t, c, s, "1/0 1/-1")
	first.Status.Phase = corev1.PodSucceeded
	require.NoError(t, c.Status().Update(t.Context(), first))
	settled(t, c, s, "0/1 1/-1")
	await.Until(t, func(check *assert.CollectT) { // its cache may be behind the status that is there
		_, got := subset()
		assert.Equal(check, "a", got)
	})
}

// During a rollout each revision has the whole room, and the old pods of the first subset go first. A ReplicaSet that is
// being deleted with its pods has none any more.
func TestRevisionsOfDeploymentsHaveTheWholeRoom(t *testing.T) {
	c := serve(t)
	namespace, kind := env.Namespace(t), metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}
	const revision = "deployment.kubernetes.io/revision"
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", Annotations: map[string]string{revision: "2"}},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)), Template: template(), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		},
	}
	s := spreadOf(namespace, kind, 1)
	require.NoError(t, c.Create(t.Context(), deployment))
	require.NoError(t, c.Create(t.Context(), s))
	sets := map[string]*appsv1.ReplicaSet{}
	for number, hash := range map[string]string{"1": "old", "2": "new"} {
		labels := map[string]string{"app": "web", contract.TemplateHashLabel: hash}
		set := newReplicaSet(namespace, 2)
		sets[hash] = set
		set.Name, set.Annotations, set.Labels = "web-"+hash, map[string]string{revision: number}, labels
		set.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(deployment, kind.GroupVersionKind())}
		require.NoError(t, c.Create(t.Context(), set))
		for _, want := range []string{"a", "b"} {
			pod := newPod(set, metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"}, "", labels)
			require.NoError(t, c.Create(t.Context(), pod))
			assert.Equal(t, want, subsetOf(pod), hash)
		}
	}
	settled(t, c, s, "2/0 2/-1")
	for _, hash := range []string{"old", "new"} {
		entry := s.Status.VersionedSubsetStatuses[hash]
		require.Len(t, entry, 2)
		assert.Equal(t, []int32{1, 0, 1}, []int32{entry[0].Replicas, entry[0].MissingReplicas, entry[1].Replicas}, hash)
	}
	await.Until(t, func(check *assert.CollectT) {
		got := map[string]string{}
		for _, pod := range podsOf(t, c, namespace) {
			got[pod.Labels[contract.TemplateHashLabel]+" "+subsetOf(&pod)] = pod.Annotations[contract.PodDeletionCostAnnotation]
		}
		assert.Equal(check, map[string]string{"new a": "200", "new b": "100", "old a": "100", "old b": "200"}, got)
	})

	require.NoError(t, c.Delete(t.Context(), sets["old"], client.PropagationPolicy(metav1.DeletePropagationForeground)))
	settled(t, c, s, "1/0 1/-1")
	assert.NotContains(t, s.Status.VersionedSubsetStatuses, "old")
	assert.Len(t, podsOf(t, c, namespace), 4, "they wait for somebody to delete them")
}

// The revisions of a CloneSet have the whole room each if a flag says so. It may be named in another version than its
// pods name it in.
func TestRevisionsOfCloneSetsHaveTheWholeRoom(t *testing.T) {
	c := serve(t, func(s *settings) { require.NoError(t, s.versioned.Set("deployment,replicaset,cloneset")) })
	namespace, kind := env.Namespace(t), metav1.TypeMeta{APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet"}
	set := workload(t, namespace, kind, "{replicas: 2}")
	require.NoError(t, c.Create(t.Context(), set))
	set.Object["status"] = map[string]any{"observedGeneration": set.GetGeneration(), "updateRevision": "web-new"}
	require.NoError(t, c.Status().Update(t.Context(), set))
	s := spreadOf(namespace, metav1.TypeMeta{APIVersion: "apps.kruise.io/v1alpha1", Kind: kind.Kind}, 0)
	s.Spec.Subsets[0].MaxReplicas = new(intstr.FromString("50%"))
	require.NoError(t, c.Create(t.Context(), s))
	for _, hash := range []string{"old", "new"} {
		for _, want := range []string{"a", "b"} {
			pod := newPod(set, kind, "", map[string]string{"app": "web", contract.RevisionLabel: "web-" + hash})
			require.NoError(t, c.Create(t.Context(), pod))
			assert.Equal(t, want, subsetOf(pod), hash)
		}
	}
	settled(t, c, s, "2/0 2/-1")
	await.Until(t, func(check *assert.CollectT) {
		got := map[string]string{}
		for _, pod := range podsOf(t, c, namespace) {
			got[pod.Labels[contract.RevisionLabel]+" "+subsetOf(&pod)] = pod.Annotations[contract.PodDeletionCostAnnotation]
		}
		assert.Equal(check, map[string]string{"web-new a": "200", "web-new b": "100", "web-old a": "100", "web-old b": "200"}, got)
	})
}

// Pods that OpenKruise has put into subsets are counted there, and nothing is written on them.
func TestPodsOfOpenKruiseAreTakenOver(t *testing.T) {
	env.Need(t)
	namespace := env.Namespace(t)
	owner, s := newReplicaSet(namespace, 2), newSpread(namespace, intstr.FromInt32(1))
	var before []string
	t.Run("no controller runs", func(t *testing.T) {
		c, _ := admitting(t)
		require.NoError(t, c.Create(t.Context(), owner))
		for subset, annotation := range map[string]string{
			"a": `{"name":"web","subset":"a","uid":"4a2f6f0c-36d2-4f2b-9df2-1d2f4d3c9e11"}`, "b": `{"Name":"web","Subset":"b"}`,
		} {
			pod := podOf(owner)
			pod.Annotations = map[string]string{
				v1beta1.MatchedAnnotation: annotation, contract.PodDeletionCostAnnotation: map[string]string{"a": "200", "b": "100"}[subset],
			}
			require.NoError(t, c.Create(t.Context(), pod))
			before = append(before, pod.Name+" "+pod.ResourceVersion)
		}
		require.NoError(t, c.Create(t.Context(), s))
	})
	t.Run("the controller runs", func(t *testing.T) {
		c := serve(t)
		settled(t, c, s, "1/0 1/-1")
		var after []string
		for _, pod := range podsOf(t, c, namespace) {
			after = append(after, pod.Name+" "+pod.ResourceVersion)
		}
		assert.ElementsMatch(t, before, after)
		assert.Equal(t, map[string]int{"b": 1}, create(t, c, owner, 1), "the first subset is full")
	})
}
