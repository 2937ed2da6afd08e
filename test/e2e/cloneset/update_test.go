package cloneset

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/forecasts"
	"github.com/flotilla-project/flotilla/test/story"
)

func TestInPlaceUpdateKeepsThePods(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 3)
	givenSet(t, set)
	before := podsOf(t, set)

	end := world.Always(t, set.Namespace, story.AtLeastReady(2))
	rolls(t, set, image("v2"))
	end()

	after := podsOf(t, set)
	assert.Equal(t, story.Identities(before), story.Identities(after))
	assert.Equal(t, []string{app + "v2", app + "v2", app + "v2"}, story.Images(after))
	for i := range after {
		status := after[i].Status.ContainerStatuses[0]
		assert.EqualValues(t, 1, status.RestartCount, after[i].Name)
		assert.NotEqual(t, before[i].Status.ContainerStatuses[0].ContainerID, status.ContainerID, after[i].Name)
	}
	assert.Equal(t, set.Status.UpdateRevision, set.Status.CurrentRevision)
}

func TestRecreateReplacesThePods(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 3, recreating)
	givenSet(t, set)
	before := podsOf(t, set)

	end := world.Always(t, set.Namespace, story.AtLeastReady(2))
	rolls(t, set, image("v2"))
	end()

	for _, o := range story.Identities(story.Active(podsOf(t, set))) {
		assert.NotContains(t, story.Identities(before), o)
	}
}

func TestPartitionKeepsOldPods(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 4)
	givenSet(t, set)
	rolls(t, set, func(s *v1beta1.CloneSet) {
		image("v2")(s)
		s.Spec.UpdateStrategy.RollingUpdate.Partition = new(intstr.FromString("75%"))
	})
	assert.EqualValues(t, 1, set.Status.UpdatedReplicas)
	assert.EqualValues(t, 1, set.Status.ExpectedUpdatedReplicas)
	assert.NotEqual(t, set.Status.UpdateRevision, set.Status.CurrentRevision)

	rolls(t, set, func(s *v1beta1.CloneSet) {
		s.Spec.UpdateStrategy.RollingUpdate.Partition = new(intstr.FromInt32(0))
	})
	assert.EqualValues(t, 4, set.Status.UpdatedReplicas)
}

func TestPausedUpdatesNothing(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 2)
	givenSet(t, set)
	rolls(t, set, func(s *v1beta1.CloneSet) {
		image("v2")(s)
		s.Spec.UpdateStrategy.RollingUpdate.Paused = true
		s.Spec.Replicas = new(int32(3))
	})
	assert.EqualValues(t, 1, set.Status.UpdatedReplicas, "only the new pod has the new image")
	rolls(t, set, func(s *v1beta1.CloneSet) { s.Spec.UpdateStrategy.RollingUpdate.Paused = false })
	assert.EqualValues(t, 3, set.Status.UpdatedReplicas)
}

func TestABadImageIsFixedForward(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 3)
	givenSet(t, set)
	end := world.Always(t, set.Namespace, story.AtLeastReady(2))
	rollout := forecasts.Edit(t, world, set, image("no-such-version"), "--crash", app+"no-such-version")
	story.Eventually(t, "one pod stuck on the image", func(context.Context) error {
		stuck := 0
		for _, o := range podsOf(t, set) {
			if w := o.Status.ContainerStatuses[0].State.Waiting; w != nil && o.Spec.Containers[0].Image == app+"no-such-version" {
				stuck++
			}
		}
		return story.Want(stuck == 1, "%d pods are stuck", stuck)
	})
	rollout.ComesTrue(t)
	rolls(t, set, image("v2"))
	end()
	assert.EqualValues(t, 3, set.Status.UpdatedReplicas)
}

func TestRollbackTakesTheOldRevisionAgain(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 2)
	givenSet(t, set)
	first := set.Status.UpdateRevision
	rolls(t, set, image("v2"))
	require.NotEqual(t, first, set.Status.UpdateRevision)
	rolls(t, set, image("v1"))
	assert.Equal(t, first, set.Status.UpdateRevision)
}

// The operator is killed repeatedly during a rollout. The rollout completes, and at most one pod is out of service at
// any time.
func TestKilledOperatorFinishesTheRollout(t *testing.T) {
	set := newSet(world.Namespace(t), 4)
	givenSet(t, set)
	before := story.Identities(podsOf(t, set))
	end := world.Always(t, set.Namespace, story.AtLeastReady(3))
	rollout := forecasts.Edit(t, world, set, image("v2"))
	for updated := int32(1); updated <= 3; updated++ {
		story.Eventually(t, fmt.Sprintf("%d updated pods", updated), func(ctx context.Context) error {
			if err := world.Client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
				return err
			}
			return story.Want(set.Status.UpdatedReplicas >= updated, "%d are updated", set.Status.UpdatedReplicas)
		})
		world.KillOperator(t, "cloneset")
	}
	settles(t, set)
	end()
	rollout.ComesTrue(t)
	assert.Equal(t, before, story.Identities(podsOf(t, set)))
	assert.EqualValues(t, 4, set.Status.UpdatedReplicas)
}

func TestForecastsComeTrue(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 2)
	givenSet(t, set)
	world.ForecastsComeTrue(t, set.Namespace, "clone/web", app+"v2", func() { settles(t, set) })
}
