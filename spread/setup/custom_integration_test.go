package setup

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"

	"github.com/flotilla-project/flotilla/spread/internal/workloads"
)

func gameServerSet() metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: "example.io/v1", Kind: "GameServerSet"}
}

// allow lets kind GameServerSet be spread until the end of the test; its replicas are at the path, empty for its scale.
func allow(t *testing.T, path string) {
	t.Helper()
	allowAll(t, fmt.Sprintf(`{"Group":"example.io","Version":"v1","Kind":"GameServerSet","replicasPath":%q}`, path))
}

// allowAll lets these kinds be spread until the end of the test. The operator has to start after the first call.
func allowAll(t *testing.T, kinds ...string) {
	t.Helper()
	m := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: workloads.ConfigMapName},
		Data:       map[string]string{workloads.ConfigMapKey: `{"workloads":[` + strings.Join(kinds, ",") + `]}`},
	}
	c := env.Client(t)
	if err := c.Create(t.Context(), m); err == nil {
		t.Cleanup(func() { assert.NoError(t, c.Delete(context.WithoutCancel(t.Context()), m)) })
		return
	}
	require.NoError(t, c.Update(t.Context(), m))
}

// What the ConfigMap says of a kind counts for its spreads as soon as it changes.
func TestChangesOfTheConfigMapAreFollowed(t *testing.T) {
	env.Need(t)
	allow(t, "spec.replicas")
	c := serve(t)
	namespace := env.Namespace(t)
	set := workload(t, namespace, gameServerSet(), "{replicas: 4, spare: 8}")
	require.NoError(t, c.Create(t.Context(), set))
	s := spreadOf(namespace, gameServerSet(), 0)
	s.Spec.Subsets[0].MaxReplicas = new(intstr.FromString("50%"))
	require.NoError(t, c.Create(t.Context(), s))
	settled(t, c, s, "0/2 0/-1")
	allow(t, "spec.spare")
	settled(t, c, s, "0/4 0/-1")
}

// Pods without an owner belong to the workload whose scale selects them: they are counted and marked, though no webhook
// is called for them. Pods of others are not, whatever their labels.
func TestPodsWithoutOwnersAreFoundByTheScale(t *testing.T) {
	env.Need(t)
	allow(t, "")
	c := serve(t)
	namespace := env.Namespace(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{"zone": "a"}}}
	require.NoError(t, c.Create(t.Context(), node))
	node.Spec.Taints = nil // the API server marks new nodes as not ready
	require.NoError(t, c.Update(t.Context(), node))
	set := workload(t, namespace, gameServerSet(), "{replicas: 2}")
	require.NoError(t, c.Create(t.Context(), set))
	require.NoError(t, unstructured.SetNestedField(set.Object, "app=web", "status", "labelSelector"))
	require.NoError(t, c.Status().Update(t.Context(), set))
	other := newReplicaSet(namespace, 1)
	other.Name = "other"
	require.NoError(t, c.Create(t.Context(), other))
	create := func(name string, change func(*corev1.Pod)) *corev1.Pod {
		pod := podOf(other)
		pod.Name, pod.GenerateName, pod.OwnerReferences, pod.Spec.NodeName = name, "", nil, node.Name
		change(pod)
		require.NoError(t, c.Create(t.Context(), pod))
		return pod
	}
	first := create("first", func(*corev1.Pod) {})
	foreign := create("foreign", func(pod *corev1.Pod) { pod.OwnerReferences = podOf(other).OwnerReferences })
	unlike := create("unlike", func(pod *corev1.Pod) { pod.Labels = map[string]string{"app": "other"} })
	s := spreadOf(namespace, gameServerSet(), 3)
	require.NoError(t, c.Create(t.Context(), s))
	settled(t, c, s, "1/2 0/-1")

	second := create("second", func(*corev1.Pod) {})
	settled(t, c, s, "2/1 0/-1")
	require.NoError(t, c.Delete(t.Context(), first, client.GracePeriodSeconds(0)))
	settled(t, c, s, "1/2 0/-1")
	got := map[string]string{}
	for _, pod := range podsOf(t, c, namespace) {
		got[pod.Name] = subsetOf(&pod)
		assert.NotContains(t, pod.Annotations, contract.PodDeletionCostAnnotation)
	}
	assert.Equal(t, map[string]string{second.Name: "a", foreign.Name: "", unlike.Name: ""}, got)
}
