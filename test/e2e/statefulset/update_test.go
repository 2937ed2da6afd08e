package statefulset

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/forecasts"
	"github.com/flotilla-project/flotilla/test/story"
)

func TestParallelInPlaceUpdateKeepsThePods(t *testing.T) {
	updateTwoAtATime(t, func(*v1beta1.StatefulSet) {})
}

func TestOrderedSetsUpdateSeveralPodsAtATime(t *testing.T) { updateTwoAtATime(t, ordered) }

// updateTwoAtATime updates four pods in place, of which two may be out of service.
func updateTwoAtATime(t *testing.T, policy func(*v1beta1.StatefulSet)) {
	t.Helper()
	t.Parallel()
	set := newSet(world.Namespace(t), 4, policy, maxUnavailable(2))
	givenSet(t, set)
	before := podsOf(t, set)

	most := 0
	end := world.Always(t, set.Namespace, func(pods story.Pods) error {
		most = max(most, 4-pods.Ready())
		return story.AtLeastReady(2)(pods)
	})
	rolls(t, set, image("v2"))
	end()

	after := podsOf(t, set)
	assert.Equal(t, 2, most, "two pods are out of service at a time")
	assert.Equal(t, story.Identities(before), story.Identities(after))
	assert.Equal(t, []string{"v2", "v2", "v2", "v2"}, versions(after))
	for i := range after {
		assert.EqualValues(t, 1, after[i].Status.ContainerStatuses[0].RestartCount, after[i].Name)
	}
	assert.NotContains(t, story.ContainerIDs(after), story.ContainerIDs(before)[0])
	assert.Equal(t, set.Status.UpdateRevision, set.Status.CurrentRevision)
}

func TestRecreateKeepsTheNames(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 3, recreating)
	givenSet(t, set)
	before := podsOf(t, set)
	end := world.Always(t, set.Namespace, story.AtLeastReady(2))
	rolls(t, set, image("v2"))
	end()
	after := story.Active(podsOf(t, set))
	assert.Equal(t, names(before), names(after))
	for i := range after {
		assert.NotEqual(t, before[i].UID, after[i].UID, after[i].Name)
	}
}

func TestPartitionKeepsTheLowestPods(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 4, reserve(1))
	givenSet(t, set)
	rolls(t, set, changes(image("v2"), partition(3)))
	assert.Equal(t, []string{"v1", "v1", "v1", "v2"}, versions(podsOf(t, set)), "the canary is the highest")
	assert.EqualValues(t, 1, set.Status.UpdatedReplicas)
	assert.NotEqual(t, set.Status.UpdateRevision, set.Status.CurrentRevision)

	// A recreated pod has the revision of its ordinal.
	pods := podsOf(t, set)
	for _, i := range []int{0, 3} {
		require.NoError(t, world.Client.Delete(t.Context(), &pods[i]))
	}
	story.Eventually(t, "new pods in both places", func(context.Context) error {
		now := story.Active(podsOf(t, set))
		return story.Want(len(now) == 4 && now[0].UID != pods[0].UID && now[3].UID != pods[3].UID, "pods are %v", story.Identities(now))
	})
	settles(t, set)
	assert.Equal(t, []string{"v1", "v1", "v1", "v2"}, versions(story.Active(podsOf(t, set))))

	for _, left := range []int32{1, 0} {
		rolls(t, set, partition(left))
		assert.Equal(t, 4-left, set.Status.UpdatedReplicas)
	}
	assert.Equal(t, set.Status.UpdateRevision, set.Status.CurrentRevision)
}

func TestPausedUpdatesNothing(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 2)
	givenSet(t, set)
	rolls(t, set, changes(image("v2"), replicas(3), func(s *v1beta1.StatefulSet) {
		s.Spec.UpdateStrategy.RollingUpdate.Paused = true
	}))
	assert.Equal(t, []string{"v1", "v1", "v2"}, versions(podsOf(t, set)))
	rolls(t, set, func(s *v1beta1.StatefulSet) { s.Spec.UpdateStrategy.RollingUpdate.Paused = false })
	assert.Equal(t, []string{"v2", "v2", "v2"}, versions(podsOf(t, set)))
}

// With priorities labels determine the order, and the partition counts updated pods of any ordinal.
func TestPrioritiesGoBeforeOrdinals(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 4, func(s *v1beta1.StatefulSet) {
		s.Spec.UpdateStrategy.RollingUpdate.UnorderedUpdate = &v1beta1.UnorderedUpdateStrategy{
			PriorityStrategy: &workload.UpdatePriorityStrategy{OrderPriority: []workload.UpdatePriorityOrderTerm{{OrderedKey: "turn"}}},
		}
	})
	givenSet(t, set)
	pods := podsOf(t, set)
	for i, turn := range []string{"t-2", "t-4", "", "t-1"} {
		if turn != "" {
			story.Edit(t, world, &pods[i], func(o *corev1.Pod) { o.Labels["turn"] = turn })
		}
	}
	for updated, want := range [][]string{
		{"v1", "v1", "v1", "v1"}, {"v1", "v2", "v1", "v1"}, {"v2", "v2", "v1", "v1"}, {"v2", "v2", "v1", "v2"}, {"v2", "v2", "v2", "v2"},
	} {
		rolls(t, set, changes(image("v2"), partition(int32(4-updated))))
		assert.Equal(t, want, versions(podsOf(t, set)))
	}
}

// A good revision replaces a first revision that never became available, with any policy and without manual steps.
func TestABadFirstRevisionIsFixedForward(t *testing.T) {
	t.Parallel()
	created := map[string]int{"Parallel": 3, "OrderedReady": 1}
	for name, policy := range map[string]func(*v1beta1.StatefulSet){"Parallel": func(*v1beta1.StatefulSet) {}, "OrderedReady": ordered} {
		for how, update := range map[string]func(*v1beta1.StatefulSet){"in place": func(*v1beta1.StatefulSet) {}, "recreated": recreating} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				set := newSet(world.Namespace(t), 3, policy, update, image("no-such-version"))
				require.NoError(t, world.Client.Create(t.Context(), set))
				story.Eventually(t, "pods stuck on their image", func(context.Context) error {
					pods := podsOf(t, set)
					stuck := !slices.ContainsFunc(pods, func(o corev1.Pod) bool { return !isStuck(&o, app+"no-such-version") })
					return story.Want(len(pods) == created[name] && stuck, "pods are %v", names(pods))
				})
				rolls(t, set, image("v1"))
				assert.Equal(t, []string{"v1", "v1", "v1"}, versions(podsOf(t, set)))
			})
		}
	}
}

// A bad update stops at the first pod, and the next good one continues from there.
func TestABadUpdateIsFixedForward(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 3, ordered)
	givenSet(t, set)
	end := world.Always(t, set.Namespace, story.AtLeastReady(2))
	rollout := forecasts.Edit(t, world, set, image("no-such-version"), "--crash", app+"no-such-version")
	story.Eventually(t, "one pod stuck on the image", func(context.Context) error {
		pods := podsOf(t, set)
		return story.Want(len(pods) == 3 && isStuck(&pods[2], app+"no-such-version"), "images are %v", versions(pods))
	})
	rollout.ComesTrue(t)
	rolls(t, set, image("v2"))
	end()
	assert.EqualValues(t, 3, set.Status.UpdatedReplicas)
}

// A labelled pod is replaced by one with the same name and without the label, also below the partition.
func TestSpecifiedPodsAreReplaced(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 3)
	givenSet(t, set)
	rolls(t, set, changes(image("v2"), partition(2)))
	before := podsOf(t, set)
	story.Edit(t, world, &before[1], func(o *corev1.Pod) { o.Labels[contract.SpecifiedDeleteLabel] = "true" })
	story.Eventually(t, "another pod web-1", func(context.Context) error {
		pods := story.Active(podsOf(t, set))
		return story.Want(len(pods) == 3 && pods[1].UID != before[1].UID, "pods are %v", story.Identities(pods))
	})
	settles(t, set)
	after := story.Active(podsOf(t, set))
	assert.Equal(t, names(before), names(after))
	assert.Equal(t, []string{"v1", "v1", "v2"}, versions(after))
	assert.NotContains(t, after[1].Labels, contract.SpecifiedDeleteLabel)
	assert.Equal(t, before[0].UID, after[0].UID)
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
		story.Reaches(t, world, set, "updated pods", func(set *v1beta1.StatefulSet) error {
			return story.Want(set.Status.UpdatedReplicas >= updated, "%d are updated", set.Status.UpdatedReplicas)
		})
		world.KillOperator(t, "statefulset")
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
	world.ForecastsComeTrue(t, set.Namespace, "asts/web", app+"v2", func() { settles(t, set) })
}
