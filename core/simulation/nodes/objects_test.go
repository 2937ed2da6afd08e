package nodes_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/nodes"
)

// pinnedPod is a pod for node-0.
func pinnedPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main", Image: "app:1"}},
			Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"node-0"}}}}},
			}}},
		},
	}
}

func TestPodsWaitForTheirNodeAndGoWithIt(t *testing.T) {
	w := nodes.New(cluster.Options{Calm: true})
	w.AddNodes(2)
	pod := func(name string) *corev1.Pod { return cluster.Get[*corev1.Pod](w.View(nil), namespace, name) }
	w.RemoveNode("node-0")
	_, err := w.Create(cluster.UserActor, pinnedPod("a"))
	require.NoError(t, err)
	w.Advance(10 * time.Second)
	require.Empty(t, pod("a").Spec.NodeName, "its node does not exist")

	w.AddNode("node-0")
	w.Advance(10 * time.Second)
	assert.Equal(t, "node-0", pod("a").Spec.NodeName)
	assert.Equal(t, corev1.PodRunning, pod("a").Status.Phase)

	w.FailNode("node-0")
	node := w.Nodes()[1]
	assert.Equal(t, corev1.ConditionUnknown, node.Status.Conditions[0].Status)
	assert.Len(t, node.Spec.Taints, 2)
	w.RecoverNode("node-0")
	node = w.Nodes()[1]
	assert.Equal(t, corev1.ConditionTrue, node.Status.Conditions[0].Status)
	assert.Empty(t, node.Spec.Taints)

	w.RemoveNode("node-0")
	w.Advance(30 * time.Second)
	assert.Nil(t, pod("a"), "it was collected")
	assert.Len(t, w.Nodes(), 1)
}
