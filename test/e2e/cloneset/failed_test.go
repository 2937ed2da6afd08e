package cloneset

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/story"
)

// A template names a node and selects another one: its kubelet rejects each pod at once. The first one is replaced at once,
// further ones with pauses that double, and the set tells when the next one is made. A valid edit ends it. A pod that asks for
// more than the node has would be rejected, too, but with it those that come to the node at the same moment.
func TestPodsThatANodeRejectsAreReplacedWithPauses(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 1, func(s *v1beta1.CloneSet) {
		pod := &s.Spec.Template.Spec
		pod.NodeName, pod.NodeSelector = world.Cluster.Nodes()[0].Name(), map[string]string{corev1.LabelHostname: "another"}
	})
	require.NoError(t, world.Client.Create(t.Context(), set))
	const enough = 5
	var pods []corev1.Pod
	story.Eventually(t, "pods that fail", func(context.Context) error {
		pods = podsOf(t, set)
		return story.Want(len(pods) >= enough, "there are %d", len(pods))
	})
	story.WaitsFor(t, world, set, "FailedPodBackOff", "the next one is created at ")

	slices.SortFunc(pods, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	for i := 1; i < enough; i++ {
		pauses := time.Duration(1<<(i-1)-1) * time.Second
		assert.GreaterOrEqual(t, pods[i].CreationTimestamp.Sub(pods[0].CreationTimestamp.Time), pauses, "before pod %d", i)
	}

	edit(t, set, func(s *v1beta1.CloneSet) { s.Spec.Template.Spec.NodeSelector = nil })
	story.Reaches(t, world, set, "a pod that runs", func(set *v1beta1.CloneSet) error {
		return story.Want(story.Condition(set, "Ready").Status == "True" && set.Status.UpdatedReadyReplicas == 1, "status is %+v", set.Status)
	})
	for _, o := range podsOf(t, set) {
		if o.Status.Phase == corev1.PodFailed {
			assert.Equal(t, "NodeAffinity", o.Status.Reason, "it is left to be looked at")
		}
	}
}
