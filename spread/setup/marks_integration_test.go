package setup

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
)

// A namespace is marked before its first WorkloadSpread is stored.
func TestNamespacesOfSpreadsAreMarked(t *testing.T) {
	c := serve(t)
	ns := &corev1.Namespace{}
	named := types.NamespacedName{Name: env.Namespace(t)}
	label := func(check require.TestingT) string {
		require.NoError(check, c.Get(t.Context(), named, ns))
		return ns.Labels[v1beta1.NamespaceLabel]
	}
	owner, s := newReplicaSet(named.Name, 1), newSpread(named.Name, intstr.FromInt32(9))
	require.NoError(t, c.Create(t.Context(), owner))
	require.NoError(t, c.Create(t.Context(), s.DeepCopy(), client.DryRunAll))
	assert.Empty(t, label(t), "a dry run marks nothing")
	require.NoError(t, c.Create(t.Context(), s))
	assert.Equal(t, "true", label(t))
	before := ns.ResourceVersion
	other := newSpread(named.Name, intstr.FromInt32(9))
	other.Name, other.Spec.TargetReference.Name = "other", "other"
	require.NoError(t, c.Create(t.Context(), other))
	assert.Equal(t, "true", label(t))
	assert.NotEqual(t, before, ns.ResourceVersion, "a replica that would take the label away now meets a conflict")
	await.Until(t, func(check *assert.CollectT) { // the API server has a watch of its own
		assert.Equal(check, map[string]int{"a": 1}, create(t, c, owner, 1))
	})

	remove := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+v1beta1.NamespaceLabel+`":null}}}`))
	require.NoError(t, c.Patch(t.Context(), ns, remove))
	await.Until(t, func(check *assert.CollectT) { assert.Equal(check, "true", label(check), "it comes back") })
}

// A deletion and an eviction are noted before the pod goes, and a dry run of one is not.
func TestPodsThatAreAboutToGoAreNoted(t *testing.T) {
	c, cached := admitting(t)
	namespace := env.Namespace(t)
	owner, s := newReplicaSet(namespace, 3), newSpread(namespace, intstr.FromInt32(3))
	require.NoError(t, c.Create(t.Context(), owner))
	require.NoError(t, c.Create(t.Context(), s))
	assert.Equal(t, map[string]int{"a": 3}, create(t, c, owner, 3))
	pods := podsOf(t, c, namespace)
	require.Len(t, pods, 3)
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(s), s))
	s.Status.VersionedSubsetStatuses = map[string][]v1beta1.SubsetStatus{v1beta1.VersionIgnored: {{Name: "a", Replicas: 3}, {Name: "b", MissingReplicas: -1}}}
	require.NoError(t, c.Status().Update(t.Context(), s))
	await.Until(t, func(check *assert.CollectT) {
		seen := &v1beta1.WorkloadSpread{}
		require.NoError(check, cached.Get(t.Context(), client.ObjectKeyFromObject(s), seen))
		assert.Equal(check, s.ResourceVersion, seen.ResourceVersion)
		for i := range pods {
			assert.NoError(check, cached.Get(t.Context(), client.ObjectKeyFromObject(&pods[i]), &corev1.Pod{}))
		}
	})

	leaving := func() (names []string) {
		require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(s), s))
		for name := range s.Status.VersionedSubsetStatuses[v1beta1.VersionIgnored][0].DeletingPods {
			names = append(names, name)
		}
		return names
	}
	evict := func(pod *corev1.Pod, o metav1.DeleteOptions) error {
		return c.SubResource("eviction").Create(t.Context(), pod, &policyv1.Eviction{DeleteOptions: &o})
	}
	require.NoError(t, evict(&pods[2], metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}))
	require.NoError(t, c.Delete(t.Context(), &pods[2], client.DryRunAll))
	require.NoError(t, evict(&pods[0], metav1.DeleteOptions{}))
	assert.ElementsMatch(t, []string{pods[0].Name}, leaving())
	require.NoError(t, c.Delete(t.Context(), &pods[1]))
	assert.ElementsMatch(t, []string{pods[0].Name, pods[1].Name}, leaving())
	assert.Equal(t, map[string]int{"a": 2, "b": 1}, create(t, c, owner, 3), "the places of both are free at once")
}

// A WorkloadSpread that is deleted and created again has its pods: nothing but admission runs here, and its status counts
// none yet.
func TestASpreadThatIsCreatedAgainHasItsPods(t *testing.T) {
	c, cached := admitting(t)
	namespace := env.Namespace(t)
	owner, s := newReplicaSet(namespace, 4), newSpread(namespace, intstr.FromInt32(3))
	require.NoError(t, c.Create(t.Context(), owner))
	require.NoError(t, c.Create(t.Context(), s))
	assert.Equal(t, map[string]int{"a": 2}, create(t, c, owner, 2))
	other := newReplicaSet(namespace, 1)
	other.Name = "other"
	require.NoError(t, c.Create(t.Context(), other))
	pretender := podOf(other)
	pretender.Annotations = map[string]string{v1beta1.MatchedAnnotation: `{"name":"web","subset":"a"}`}
	require.NoError(t, c.Create(t.Context(), pretender), "a pod of another workload takes no place")
	require.NoError(t, c.Delete(t.Context(), s))
	s = newSpread(namespace, intstr.FromInt32(3))
	require.NoError(t, c.Create(t.Context(), s))
	daemons := podOf(owner)
	daemons.OwnerReferences[0].Kind = "DaemonSet"
	require.NoError(t, c.Create(t.Context(), daemons), "the cache keeps the name of such a pod alone")
	await.Until(t, func(check *assert.CollectT) {
		seen := &v1beta1.WorkloadSpread{}
		require.NoError(check, cached.Get(t.Context(), client.ObjectKeyFromObject(s), seen))
		assert.Equal(check, s.UID, seen.UID)
		for _, pod := range inSubset(podsOf(t, c, namespace), "a") {
			assert.NoError(check, cached.Get(t.Context(), client.ObjectKeyFromObject(&pod), &corev1.Pod{}))
		}
	})
	assert.Equal(t, map[string]int{"a": 1, "b": 1}, create(t, c, owner, 2))
}
