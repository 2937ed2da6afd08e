package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// With its hook untaken a pod that goes back waits in PreparingUpdate, as one does that goes forward.
func TestHooksHoldPodsThatGoBack(t *testing.T) {
	hook := gen.Label("hook", "on")
	w := given(t, 5, hooked(), policy(v1beta1.InPlaceIfPossible), partition("5")).old(2, hook).
		updated(1, hook, gen.Lifecycle(contract.LifecyclePreparingUpdate)).updated(2, hook)
	w.featureGates.PartitionRollback = true
	todo := w.plan()
	require.True(t, todo.Empty(), todo.String())
	partition("0")(w.set)
	require.Contains(t, text(w.plan()), "PatchMetadata pod web-new2 (Refresh): PreparingUpdate to Normal", "it need not go back any more")
}

// Of three revisions only pods of the update revision are too many.
func TestOnlyUpdatedPodsGoBack(t *testing.T) {
	w := given(t, 5, policy(v1beta1.InPlaceIfPossible), partition("4")).old(1).updated(2).
		old(2, gen.Revision("web-third"), gen.Ready(now))
	w.featureGates.PartitionRollback = true
	todo := w.plan()
	require.Equal(t, 1, todo.Count(action.UpdateInPlace), todo.String())
	assert.Contains(t, todo.String(), "UpdateInPlace pod web-new")
}

// Surge pods stand in for pods that cannot go back in place, too.
func TestSurgeForPodsThatCannotGoBackInPlace(t *testing.T) {
	w := given(t, 5, policy(v1beta1.InPlaceIfPossible), partition("4"), maxSurge("1"))
	template := gen.Template(gen.Label("app", "web"), gen.Image("main", "app:2"), gen.Image("second", "app:2"))
	w.set.Spec.Template = template
	w.revisions[1] = revisionOf(t, w, template)
	w.updated(5)
	w.featureGates.PartitionRollback = true
	require.Equal(t, outcome{createOld: 1}, w.outcome())
}

// Pods that are missing at both revisions are made; those just made at the update revision stay there.
func TestPodsDoNotGoBackInPlaceOfMissingOnes(t *testing.T) {
	specified := gen.Label(contract.SpecifiedDeleteLabel, "true")
	w := given(t, 4, partition("2"), excluding()).old(1).old(2, specified).updated(1, unready)
	w.featureGates.PartitionRollback = true
	require.Equal(t, outcome{}, w.outcome(), "the specified ones wait for the new one")
	w = given(t, 4, partition("2"), failing).old(1).updated(1, unready)
	w.featureGates.PartitionRollback = true
	require.Equal(t, outcome{createOld: 1, createNew: 1}, w.outcome(), "also while pods cannot be created")
}

// Where there are too many pods of both revisions, none moves from one to the other.
func TestSurplusPodsDoNotMove(t *testing.T) {
	fresh := gen.Change(func(o *corev1.Pod) {
		o.Labels[contract.LifecycleStateLabel] = contract.LifecyclePreparingNormal
		o.Status.Conditions = nil
	})
	w := given(t, 1, partition("1"), policy(v1beta1.InPlaceIfPossible)).old(1).old(1, fresh).updated(1, fresh)
	w.featureGates.PartitionRollback = true
	require.Equal(t, "refresh", w.plan().Steps[0].Name, "they are too many and go in the next pass")
	require.Equal(t, outcome{}, w.outcome())
}
