package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

func pruning(w *world) *world {
	w.featureGates.PruneIneligibleNodes = true
	return w
}

// A specified pod that goes by this plan uses up maxUnavailable for the update, too, on whichever node it is.
func TestSpecifiedPodsAndTheUpdateShareOneBudget(t *testing.T) {
	named := gen.SpecifiedDelete()
	busy, broken := tainted(corev1.TaintEffectNoSchedule), tainted(corev1.TaintEffectNoExecute)
	lost, skip := notReady(0), unready(v1beta1.SkipUnreadyNodes)
	cases := []struct {
		name  string
		given *world
		want  []string
	}{
		{"on a node that must not run it", given(t, 3).node("n3", busy).old("n1 n2").old("n3", named), []string{"delete n3"}},
		{"on one that is pruned", pruning(given(t, 3).node("n3", busy).old("n1 n2").old("n3", named)), []string{"delete n3"}},
		{"in service or not", pruning(given(t, 3).node("n3", busy).old("n1 n2").old("n3", named, down)), []string{"delete n3"}},
		{"which leaves what it does not use", pruning(given(t, 4, maxUnavailable("2")).node("n4", busy).old("n1 n2 n3").old("n4", named)), []string{"delete n4", "delete n3"}},
		{"which a hook holds", pruning(given(t, 3, hooked, inPlace).node("n3", busy).old("n1 n2").old("n3", named, hookOn)), []string{"hold n3"}},
		{"a hook does not hold up the update afterwards", pruning(given(t, 3, hooked, inPlace).node("n3", busy).old("n1 n2").old("n3", named, hookOn, preparing)), []string{"update n2"}},
		{"nor does a pod that terminates", pruning(given(t, 3).node("n3", busy).old("n1 n2").old("n3", named, terminating)), []string{"delete n2"}},
		{"one that goes in any case uses up nothing", pruning(given(t, 3).node("n3", broken).old("n1 n2").old("n3", named)), []string{"delete n3", "delete n2"}},
		{"on a node that is skipped", given(t, 3, skip).node("n3", lost).old("n1 n2").updated("n3", named), []string{"delete n3"}},
		{"which uses up nothing where its pod is down", given(t, 3, skip).node("n3", lost).old("n1 n2").updated("n3", named, down), []string{"delete n3", "delete n2"}},
		{"on a node that is gone it serves nobody", given(t, 2).old("n1 n2").old("n9", named), []string{"delete n9", "delete n2"}},
		{"nor does it wait there", given(t, 2).old("n1", down).updated("n2", down).old("n9", named), []string{"delete n9", "delete n1"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { assert.Equal(t, c.want, c.given.did()) })
	}
}

// A node that is tainted or lost counts as long as its pod is there, unless it is pruned: so it does in an update.
func TestSpecifiedPodsWaitForTheNodesThatTakePart(t *testing.T) {
	named, busy := gen.SpecifiedDelete(), tainted(corev1.TaintEffectNoSchedule)
	cases := []struct {
		name  string
		given *world
		want  []string
	}{
		{"one is down where no new pod may run", given(t, 3).node("n3", busy).updated("n1").updated("n2", named).updated("n3", down), []string{}},
		{"and is replaced, which takes no other away", given(t, 3, onNodes("n3")).node("n3", busy).old("n1").old("n2", named).old("n3", down), []string{"delete n3"}},
		{"one is held there", given(t, 3, hooked).node("n3", busy).updated("n1").updated("n2", named).updated("n3", named, hookOn, preparing), []string{}},
		{"one terminates there", given(t, 3).node("n3", busy).updated("n1").updated("n2", named).updated("n3", terminating), []string{}},
		{"and is gone", given(t, 3).node("n3", busy).updated("n1").updated("n2", named), []string{"delete n2"}},
		{"on a pruned node it takes no part", pruning(given(t, 3).node("n3", busy).updated("n1").updated("n2", named).updated("n3", down)), []string{"delete n2"}},
		{"with OnDelete", given(t, 3, deleting).node("n3", busy).updated("n1").updated("n2", named).updated("n3", down), []string{}},
		{"more may be down", given(t, 3, maxUnavailable("2")).node("n3", busy).updated("n1").updated("n2", named).updated("n3", down), []string{"delete n2"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { assert.Equal(t, c.want, c.given.did()) })
	}
}
