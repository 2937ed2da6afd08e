package eligibility

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
)

func TestPinnedPodsBelongToTheirNode(t *testing.T) {
	pod := &corev1.Pod{}
	assert.Empty(t, NodeOf(pod))
	Pin(&pod.Spec, "node-1")
	assert.Equal(t, "node-1", NodeOf(pod))

	affinity(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{needs("color", corev1.NodeSelectorOpExists)}})(&pod.Spec)
	assert.Empty(t, NodeOf(pod))
	preferred := []corev1.PreferredSchedulingTerm{{Weight: 1}}
	pod.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = preferred
	Pin(&pod.Spec, "node-2")
	assert.Equal(t, "node-2", NodeOf(pod), "the affinity that chose the node goes")
	assert.Equal(t, preferred, pod.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution)

	pod.Spec.NodeName = "node-3"
	assert.Equal(t, "node-3", NodeOf(pod))
}
