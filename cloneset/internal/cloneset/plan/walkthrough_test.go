package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/simulate"
	"github.com/flotilla-project/flotilla/core/workloads/conditions"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// leaving is a pod that the preDelete hook holds.
var leaving = []gen.PodOption{gen.Lifecycle(contract.LifecyclePreparingDelete), gen.Label("hook", "on")}

// A pod that is held before its deletion comes back when it is needed again, but for one that the user
// named and one that was marked not ready.
func TestDeletionIsCancelled(t *testing.T) {
	marked := func(hook func(*workload.Lifecycle) *workload.LifecycleHook) setOption {
		return func(s *v1beta1.CloneSet) {
			s.Spec.Lifecycle = &workload.Lifecycle{PreDelete: simulate.Hook(), InPlaceUpdate: simulate.Hook()}
			hook(s.Spec.Lifecycle).MarkPodNotReady = true
		}
	}
	const cancelled = "scale:\n  PatchMetadata pod web-new2 (PreDeleteCancelled): the pod is needed again\n"
	tests := map[string]struct {
		give *world
		want string
	}{
		"one of one":                                       {given(t, 3, hooked()).updated(2).updated(1, leaving...), cancelled},
		"as many as are needed":                            {given(t, 3, hooked()).updated(2).updated(2, leaving...), cancelled},
		"none when it is too many":                         {given(t, 2, hooked()).updated(2).updated(1, leaving...), ""},
		"before another is created":                        {given(t, 3, hooked(), excluding()).updated(2).updated(1, leaving...), cancelled},
		"not one that is named":                            {given(t, 3, hooked(), named("web-new2")).updated(2).updated(1, leaving...), ""},
		"not one that is labelled":                         {given(t, 3, hooked()).updated(2).updated(1, held...), ""},
		"not from preDelete that marks pods not ready":     {given(t, 3, marked(func(l *workload.Lifecycle) *workload.LifecycleHook { return l.PreDelete })).updated(2).updated(1, leaving...), ""},
		"not with inPlaceUpdate that marks pods not ready": {given(t, 3, marked(func(l *workload.Lifecycle) *workload.LifecycleHook { return l.InPlaceUpdate })).updated(2).updated(1, leaving...), ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			todo := tt.give.plan()
			assert.Equal(t, tt.want, (&action.Plan{Steps: todo.Steps}).String())
		})
	}
}

// The operator's flag acts as if every set excluded such pods.
func TestTheFlagExcludesPodsInPreparingDelete(t *testing.T) {
	w := given(t, 3, hooked()).updated(2).updated(1, held...)
	require.Equal(t, outcome{}, w.outcome())
	w.featureGates.ExcludePreparingDelete = true
	require.Equal(t, outcome{createNew: 1}, w.outcome())
}

// Users are told that scaling out is limited when it begins and after each edit, and not in each pass.
func TestLimitedScalingOutIsToldOnce(t *testing.T) {
	w := given(t, 5, scaleUnavailable("2")).updated(1, unready)
	told := action.Notice{
		Type: corev1.EventTypeWarning, Reason: "ScaleUpLimited",
		Note:       "scaleUp is limited because of scaleStrategy.maxUnavailable, limit: 1",
		WithStatus: true,
	}
	assert.Equal(t, []action.Notice{told}, w.plan().Notices)
	w.set.Status = w.status(action.Failures{})
	assert.Empty(t, w.plan().Notices, "the status says so")
	limited := conditions.Get(w.set.Status.Conditions, v1beta1.CloneSetScaleUpLimited)
	require.NotNil(t, limited)
	assert.Equal(t, "3 more pods are created as soon as other pods are available (scaleStrategy.maxUnavailable)", limited.Message)
	conditions.Get(w.set.Status.Conditions, conditions.Ready).Message = "in other words"
	assert.Empty(t, w.plan().Notices, "whatever the words of other conditions")
	w.updated(1, unready)
	w.set.Status = w.status(action.Failures{ScaleError: "create pod: quota exceeded"})
	assert.Empty(t, w.plan().Notices, "with another number and a failure, too")
	w.set.Generation++
	told.Note = "scaleUp is limited because of scaleStrategy.maxUnavailable, limit: 0"
	assert.Equal(t, []action.Notice{told}, w.plan().Notices, "after an edit")
	assert.Empty(t, given(t, 2, scaleUnavailable("2")).plan().Notices)
	w.set.Spec.ScaleStrategy.MaxUnavailable = nil
	assert.Nil(t, conditions.Get(w.status(action.Failures{}).Conditions, v1beta1.CloneSetScaleUpLimited), "it ends with the limit")
}

// A hook that holds a pod is not all that users should know of.
func TestTheLimitIsToldBesidesOtherWaits(t *testing.T) {
	w := given(t, 5, scaleUnavailable("1"), hooked()).updated(2).updated(1, held...)
	w.set.Status = w.status(action.Failures{})
	message := conditions.Get(w.set.Status.Conditions, conditions.Ready).Message
	assert.Contains(t, message, "ScaleMaxUnavailable: 2 more pods are created as soon as other pods are available (scaleStrategy.maxUnavailable)")
	assert.Empty(t, w.plan().Notices, message)
}

func TestUsersAreToldOfDeletions(t *testing.T) {
	event := func(w *world) *action.Event { return w.plan().Steps[0].Actions[0].Event }
	assert.Equal(t, &action.Event{Succeeded: "SuccessfulDelete", Note: "succeed to delete pod web-new0", Failed: "FailedDelete"}, event(given(t, 0).updated(1)))
	recreate := event(given(t, 1).old(1))
	assert.Equal(t, "SuccessfulUpdatePodReCreate", recreate.Succeeded)
	assert.Equal(t, "FailedUpdatePodReCreate", recreate.Failed)
	assert.Contains(t, recreate.Note, "web-old0")
	w := given(t, 1, policy(v1beta1.InPlaceIfPossible)).old(1)
	assert.Equal(t, &action.Event{
		Succeeded: "SuccessfulUpdatePodInPlace", Failed: "FailedUpdatePodInPlace",
		Note: "successfully update pod web-old0 in-place(revision " + w.revisions[1].Name + ")",
	}, event(w))
}

// A pod of a time before label pod-template-hash gets it, and its state and update are left alone.
func TestPodsGetTheTemplateHashThatTheyLack(t *testing.T) {
	w := given(t, 1).updated(1)
	delete(w.pods[0].Labels, contract.TemplateHashLabel)
	todo := w.plan()
	require.Len(t, todo.Steps, 1, todo.String())
	patches := todo.Steps[0].Actions[0].Patches
	require.Len(t, patches, 1)
	assert.Equal(t, map[string]any{"labels": map[string]any{contract.TemplateHashLabel: short(w.revisions[1])}}, patches[0].Body["metadata"])
}

// Scaling in evens out the domains of the template's topology spread constraints.
func TestScalingInSpreadsOverZones(t *testing.T) {
	w := given(t, 2, func(s *v1beta1.CloneSet) {
		s.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{TopologyKey: "zone"}}
	}).updated(1, gen.OnNode("a1")).updated(1, gen.OnNode("a2")).updated(1, gen.OnNode("b1"))
	for _, alone := range []string{"a", "b"} {
		s := w.snapshot()
		s.NodeLabels = func(node string) map[string]string {
			zone := node[:1]
			if node == "a2" && alone == "a" {
				zone = "b"
			}
			return map[string]string{"zone": zone}
		}
		todo := Compute(s)
		require.Equal(t, 1, todo.Count(action.Delete), todo.String())
		node := todo.Steps[0].Actions[0].Object.(*corev1.Pod).Spec.NodeName
		if alone == "a" {
			assert.NotEqual(t, "a1", node)
		} else {
			assert.NotEqual(t, "b1", node)
		}
	}
}

// The order of an update is the user's.
func TestPrioritiesAndScatterOrderTheUpdate(t *testing.T) {
	first := func(w *world) string {
		w.t.Helper()
		todo := w.plan()
		require.Len(w.t, todo.Steps, 1, todo.String())
		return todo.Steps[0].Actions[0].Object.GetName()
	}
	byKey := rolling(func(r *v1beta1.RollingUpdateCloneSetStrategy) {
		r.PriorityStrategy = &workload.UpdatePriorityStrategy{OrderPriority: []workload.UpdatePriorityOrderTerm{{OrderedKey: "order"}}}
	})
	w := given(t, 3, byKey).old(1).old(1, gen.Label("order", "no-5")).old(1, gen.Label("order", "no-10"))
	assert.Equal(t, "web-old2", first(w))
	w.featureGates.UnkeyedFirst = true
	assert.Equal(t, "web-old0", first(w))
	scattered := rolling(func(r *v1beta1.RollingUpdateCloneSetStrategy) {
		r.ScatterStrategy = workload.UpdateScatterStrategy{{Key: "tier", Value: "gold"}}
	})
	assert.Equal(t, "web-old2", first(given(t, 4, scattered).old(2).old(2, gen.Label("tier", "gold"))))
}
