package statefulset

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/story"
)

func cpu(limit string) func(*v1beta1.StatefulSet) {
	return func(set *v1beta1.StatefulSet) {
		set.Spec.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(limit)}
		set.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}
	}
}

// The containers keep running, and no pod is out of service at any time.
func TestResourcesChangeWithoutARestart(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 2, cpu("200m"))
	givenSet(t, set)
	before := podsOf(t, set)
	end := world.Always(t, set.Namespace, story.AtLeastReady(2))
	rolls(t, set, cpu("300m"))
	end()
	after := podsOf(t, set)
	assert.Equal(t, story.Identities(before), story.Identities(after))
	assert.Equal(t, story.ContainerIDs(before), story.ContainerIDs(after))
	for i := range after {
		assert.Equal(t, "300m", after[i].Status.ContainerStatuses[0].Resources.Limits.Cpu().String())
	}
}

// Revisions that are not live are deleted, except as many as the limit allows.
func TestHistoryIsShort(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 1, func(set *v1beta1.StatefulSet) { set.Spec.RevisionHistoryLimit = new(int32(0)) })
	givenSet(t, set)
	rolls(t, set, image("v2"))
	story.Eventually(t, "a history of one revision", func(ctx context.Context) error {
		list := &appsv1.ControllerRevisionList{}
		require.NoError(t, world.Client.List(ctx, list, client.InNamespace(set.Namespace)))
		return story.Want(len(list.Items) == 1 && list.Items[0].Name == set.Status.UpdateRevision, "there are %d revisions", len(list.Items))
	})
}
