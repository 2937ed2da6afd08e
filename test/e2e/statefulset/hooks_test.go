package statefulset

import (
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

// hooked is a handler in a set with one of the two policies.
type hooked struct {
	story.Handler
	name   string
	policy func(*v1beta1.StatefulSet)
}

// hookedSets returns both handlers with both policies.
func hookedSets() []hooked {
	var all []hooked
	for _, h := range story.Handlers() {
		all = append(all, hooked{h, h.Name + " Parallel", func(*v1beta1.StatefulSet) {}}, hooked{h, h.Name + " OrderedReady", ordered})
	}
	return all
}

// held returns a change with which pods are created with the hook taken.
func held(h hooked, hooks workload.Lifecycle) func(*v1beta1.StatefulSet) {
	return func(s *v1beta1.StatefulSet) {
		h.TakenIn(&s.Spec.Template)
		s.Spec.Lifecycle = &hooks
	}
}

func TestPreDeleteHoldsPods(t *testing.T) {
	t.Parallel()
	for _, h := range hookedSets() {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			set := newSet(world.Namespace(t), 2, h.policy, held(h, workload.Lifecycle{PreDelete: &h.Hook}))
			givenSet(t, set)
			before := story.Identities(podsOf(t, set))

			story.Edit(t, world, set, replicas(0))
			world.PodIn(t, set.Namespace, contract.LifecyclePreparingDelete)
			story.Edit(t, world, set, replicas(2))
			settles(t, set)
			assert.Equal(t, before, story.Identities(podsOf(t, set)), "a pod that is needed again is taken back")

			rollout := forecasts.Edit(t, world, set, replicas(1))
			doomed := world.PodIn(t, set.Namespace, contract.LifecyclePreparingDelete)
			assert.Equal(t, "web-1", doomed.Name)
			story.Edit(t, world, doomed, h.Release)
			settles(t, set)
			rollout.ComesTrue(t)
			assert.Equal(t, before[:1], story.Identities(story.Active(podsOf(t, set))))
		})
	}
}

func TestInPlaceUpdateHookHoldsPodsBeforeAndAfter(t *testing.T) {
	t.Parallel()
	for _, h := range hookedSets() {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			set := newSet(world.Namespace(t), 2, h.policy, held(h, workload.Lifecycle{InPlaceUpdate: &h.Hook}))
			givenSet(t, set)
			before := podsOf(t, set)
			rollout := forecasts.Edit(t, world, set, image("v2"))
			for _, name := range []string{"web-1", "web-0"} {
				o := world.PodIn(t, set.Namespace, contract.LifecyclePreparingUpdate)
				require.Equal(t, name, o.Name)
				assert.Equal(t, app+"v1", o.Spec.Containers[0].Image, "nothing changes while the pod is held")
				waitsFor(t, set, name)
				story.Edit(t, world, o, h.Release)

				updated := world.PodIn(t, set.Namespace, contract.LifecycleUpdated)
				require.Equal(t, name, updated.Name)
				assert.Equal(t, app+"v2", updated.Spec.Containers[0].Image)
				waitsFor(t, set, name)
				story.Edit(t, world, updated, h.Take)
			}
			settles(t, set)
			rollout.ComesTrue(t)
			assert.Equal(t, story.Identities(before), story.Identities(podsOf(t, set)))
		})
	}
}

// waitsFor waits until the set's condition Ready is False and names the pod.
func waitsFor(t *testing.T, set *v1beta1.StatefulSet, pod string) {
	t.Helper()
	story.WaitsFor(t, world, set, "InPlaceUpdateHook", pod)
}

func TestPreNormalHoldsNewPods(t *testing.T) {
	t.Parallel()
	for _, h := range hookedSets() {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			set := newSet(world.Namespace(t), 1, h.policy, func(s *v1beta1.StatefulSet) {
				s.Spec.Lifecycle = &workload.Lifecycle{PreNormal: &h.Hook}
			})
			require.NoError(t, world.Client.Create(t.Context(), set))
			created := world.PodIn(t, set.Namespace, contract.LifecyclePreparingNormal)
			story.Reaches(t, world, created, "ready", func(o *corev1.Pod) error { return story.Want(story.IsReady(o), "it is not") })
			story.WaitsFor(t, world, set, "PreNormalHook", created.Name)
			story.Edit(t, world, created, h.Take)
			settles(t, set)
			assert.Equal(t, contract.LifecycleNormal, podsOf(t, set)[0].Labels[contract.LifecycleStateLabel])
		})
	}
}

// If the update is rolled back while the hook holds the pod, the pod comes back into service unchanged.
func TestRollbackBeforeTheHookLetsGo(t *testing.T) {
	t.Parallel()
	for _, h := range hookedSets() {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			h.Hook.MarkPodNotReady = true
			set := newSet(world.Namespace(t), 1, h.policy, held(h, workload.Lifecycle{InPlaceUpdate: &h.Hook}))
			givenSet(t, set)
			containers := story.ContainerIDs(podsOf(t, set))
			story.Edit(t, world, set, image("v2"))
			world.PodIn(t, set.Namespace, contract.LifecyclePreparingUpdate)
			rolls(t, set, image("v1"))
			assert.Equal(t, containers, story.ContainerIDs(podsOf(t, set)))
		})
	}
}
