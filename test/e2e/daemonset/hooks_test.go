package daemonset

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/forecasts"
	"github.com/flotilla-project/flotilla/test/story"
)

// hooked returns a change with which pods are created with the preDelete hook taken.
func hooked(h story.Handler) change {
	return func(s *v1beta1.DaemonSet) {
		h.TakenIn(&s.Spec.Template)
		s.Spec.Lifecycle = &workload.Lifecycle{PreDelete: &h.Hook}
	}
}

// A pod whose node is no longer eligible waits for its hook. It is taken back if the node is eligible again, and goes
// once the hook lets it.
func TestPreDeleteHoldsPodsOfNodesThatLeave(t *testing.T) {
	for _, h := range story.Handlers() {
		t.Run(h.Name, func(t *testing.T) {
			t.Parallel()
			namespace, all := world.Namespace(t), nodes()
			mark := labelled(t, namespace, all...)
			h.Hook.MarkPodNotReady = true
			set := newSet(namespace, hooked(h), onNodesWith(mark))
			givenSet(t, set)
			before := story.Identities(podsOf(t, set))

			label(t, mark, nil, all[0])
			held := world.PodIn(t, namespace, contract.LifecyclePreparingDelete)
			assert.Equal(t, all[0], held.Spec.NodeName)
			story.WaitsFor(t, world, set, "PreDeleteHook", held.Name)
			assert.EqualValues(t, 1, set.Status.NumberMisscheduled)

			label(t, mark, new("yes"), all[0])
			settlesOn(t, set, all...)
			assert.Equal(t, before, story.Identities(podsOf(t, set)), "a pod that is needed again is taken back")
			back := podOn(t, set, all[0])
			assert.Equal(t, contract.LifecycleNormal, back.Labels[contract.LifecycleStateLabel])
			// The kubelet may answer to the end of service only now, after the pod was taken back.
			story.Reaches(t, world, back, "ready again", func(o *corev1.Pod) error {
				return story.Want(story.IsReady(o), "conditions are %+v", o.Status.Conditions)
			})

			label(t, mark, nil, all[0])
			held = world.PodIn(t, namespace, contract.LifecyclePreparingDelete)
			story.Edit(t, world, held, h.Release)
			settlesOn(t, set, others(all[0])...)
		})
	}
}

// An update holds one pod after the other.
func TestPreDeleteHoldsPodsOfAnUpdate(t *testing.T) {
	t.Parallel()
	h := story.Handlers()[0]
	set := newSet(world.Namespace(t), hooked(h))
	givenSet(t, set)
	n := len(nodes())
	end := world.Always(t, set.Namespace, story.AtLeastReady(n-1))
	rollout := forecasts.Edit(t, world, set, image("v2"))
	for i := range n {
		held := world.PodIn(t, set.Namespace, contract.LifecyclePreparingDelete)
		story.WaitsFor(t, world, set, "PreDeleteHook", held.Name)
		assert.EqualValues(t, i, set.Status.UpdatedNumberScheduled)
		assert.Len(t, podsOf(t, set), n)
		story.Edit(t, world, held, h.Release)
		story.Gone(t, world, held)
	}
	updated(t, set, n)
	end()
	rollout.ComesTrue(t)
}
