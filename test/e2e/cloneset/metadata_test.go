package cloneset

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/forecasts"
	"github.com/flotilla-project/flotilla/test/story"
)

// A change of labels and annotations that no container reads only changes the pods' metadata.
func TestMetadataChangesWithoutARestart(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 2)
	givenSet(t, set)
	before := podsOf(t, set)
	end := world.Always(t, set.Namespace, story.AtLeastReady(2))
	rolls(t, set, func(s *v1beta1.CloneSet) {
		s.Spec.Template.Labels["version"] = "b"
		s.Spec.Template.Annotations = map[string]string{"example.io/note": "new"}
	})
	end()
	after := podsOf(t, set)
	assert.Equal(t, story.Identities(before), story.Identities(after))
	assert.EqualValues(t, 2, set.Status.UpdatedReplicas)
	for i := range after {
		assert.Equal(t, "b", after[i].Labels["version"])
		assert.Equal(t, "new", after[i].Annotations["example.io/note"])
		assert.Equal(t, before[i].Status.ContainerStatuses[0].ContainerID, after[i].Status.ContainerStatuses[0].ContainerID)
	}
}

// Two tags of one image have the same image ID. The update completes nevertheless, and so does the rollback.
func TestTwoTagsOfOneImageDoNotHang(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 1)
	givenSet(t, set)
	before := podsOf(t, set)
	rolls(t, set, image("v1-alias"))
	after := podsOf(t, set)
	assert.Equal(t, story.Identities(before), story.Identities(after))
	assert.Equal(t, []string{app + "v1-alias"}, story.Images(after))
	for i := range after {
		assert.Equal(t, before[i].Status.ContainerStatuses[0].ImageID, after[i].Status.ContainerStatuses[0].ImageID)
	}
	rolls(t, set, image("v1"))
	assert.Equal(t, story.Identities(before), story.Identities(podsOf(t, set)))
}

// A container reads its environment when it starts. If no node agent can restart it, InPlaceOnly waits with a reason,
// and InPlaceIfPossible recreates the pod.
func TestEnvironmentFromMetadataNeedsTheNodeAgent(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 1, func(s *v1beta1.CloneSet) {
		s.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = v1beta1.InPlaceOnly
		s.Spec.Template.Annotations = map[string]string{"config": "a"}
		s.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "CONFIG", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['config']"},
		}}}
	})
	givenSet(t, set)
	before := podsOf(t, set)[0]
	rollout := forecasts.Edit(t, world, set, func(s *v1beta1.CloneSet) { s.Spec.Template.Annotations["config"] = "b" })
	story.WaitsFor(t, world, set, "NodeAgentMissing", before.Name)
	rollout.ComesTrue(t)
	rolls(t, set, func(s *v1beta1.CloneSet) {
		s.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = v1beta1.InPlaceIfPossible
	})
	after := story.Active(podsOf(t, set))[0]
	assert.NotEqual(t, before.UID, after.UID)
	assert.Equal(t, "b", after.Annotations["config"])
}
