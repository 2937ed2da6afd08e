package cloneset

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/story"
)

// proxied gives the set a native sidecar.
func proxied(set *v1beta1.CloneSet) {
	set.Spec.Template.Spec.InitContainers = []corev1.Container{{
		Name: "proxy", Image: app + "v1", Args: []string{"-address=:8081"}, RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
	}}
}

// The image of a native sidecar changes in its pod, and no other container restarts for it.
func TestANativeSidecarIsUpdatedInItsPod(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 2, proxied)
	givenSet(t, set)
	before := podsOf(t, set)
	end := world.Always(t, set.Namespace, story.AtLeastReady(1))
	rolls(t, set, func(s *v1beta1.CloneSet) { s.Spec.Template.Spec.InitContainers[0].Image = app + "v2" })
	end()

	after := podsOf(t, set)
	assert.Equal(t, story.Identities(before), story.Identities(after))
	assert.Equal(t, story.ContainerIDs(before), story.ContainerIDs(after))
	for i := range after {
		require.Len(t, after[i].Status.InitContainerStatuses, 1)
		status := after[i].Status.InitContainerStatuses[0]
		assert.Equal(t, app+"v2", after[i].Spec.InitContainers[0].Image)
		assert.EqualValues(t, 1, status.RestartCount, after[i].Name)
		assert.NotEqual(t, before[i].Status.InitContainerStatuses[0].ContainerID, status.ContainerID, after[i].Name)
	}
	assert.EqualValues(t, 2, set.Status.UpdatedReplicas)
}
