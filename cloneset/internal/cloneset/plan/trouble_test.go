package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/scenarios"
	"github.com/flotilla-project/flotilla/core/testing/simulate"
	"github.com/flotilla-project/flotilla/core/workloads/conditions"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// since is a progress deadline of 600 s, and that the set is progressing since so many seconds, towards the newer
// revision.
func since(seconds int) setOption {
	return func(s *v1beta1.CloneSet) {
		at := metav1.NewTime(now.Add(-time.Duration(seconds) * time.Second))
		s.Spec.ProgressDeadlineSeconds = new(int32(600))
		s.Status.Conditions = []workload.Condition{{
			Type: v1beta1.CloneSetProgressing, Status: corev1.ConditionTrue, Reason: v1beta1.ReasonUpdated, LastUpdateTime: at, LastTransitionTime: at,
		}}
	}
}

// rollingOut is the world in which the status is about the newer revision, and has counted its pods.
func (w *world) rollingOut() *world {
	w.set.Status.UpdateRevision = w.revisions[1].Name
	counted := w.status(action.Failures{})
	w.set.Status.UpdatedReplicas, w.set.Status.UpdatedReadyReplicas, w.set.Status.UpdatedAvailableReplicas =
		counted.UpdatedReplicas, counted.UpdatedReadyReplicas, counted.UpdatedAvailableReplicas
	return w
}

// The message names what troubles one pod, the oldest; how many are not available it says anyway.
func TestMessagesNameTheTrouble(t *testing.T) {
	pull, crash := gen.Waiting("ImagePullBackOff", now), gen.Waiting("CrashLoopBackOff", now)
	rows := map[string]struct {
		give            *world
		reason, message string
	}{
		"a pull":  {given(t, 3).updated(2).updated(1, pull), "Progressing", "2 of 3 pods available, 3 of 3 updated; ErrImagePull (web-new2, container main)"},
		"several": {given(t, 3).updated(1).updated(2, pull), "Progressing", "1 of 3 pods available, 3 of 3 updated; ErrImagePull (web-new1, container main)"},
		"the oldest": {given(t, 2).updated(1, pull).updated(1, crash, gen.Created(now.Add(-2*time.Hour))), "Progressing",
			"0 of 2 pods available, 2 of 2 updated; CrashLoopBackOff (web-new1, container main)"},
		"no node": {given(t, 1).updated(1, gen.Unschedulable("Unschedulable", now)), "Progressing", "0 of 1 pods available, 1 of 1 updated; Unschedulable (web-new0)"},
		"besides a wait": {given(t, 3, policy(v1beta1.InPlaceIfPossible)).old(2).updated(1, pull), "MaxUnavailable",
			"2 of 3 pods available, 1 of 3 updated; ErrImagePull (web-new2, container main); MaxUnavailable web-old0: the update waits until other pods are available"},
		"of the update": {given(t, 2, partition("1")).old(1, crash).updated(1, pull), "Progressing",
			"0 of 2 pods available, 1 of 1 updated; ErrImagePull (web-new1, container main)"},
		"none": {given(t, 2).updated(1).updated(1, unready), "Progressing", "1 of 2 pods available, 2 of 2 updated"},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			list := r.give.status(action.Failures{}).Conditions
			for _, kind := range []string{conditions.Ready, conditions.Reconciling} {
				c := conditions.Get(list, kind)
				require.NotNil(t, c)
				assert.Equal(t, r.reason, c.Reason)
				assert.Equal(t, r.message, c.Message)
			}
		})
	}
}

// What the server refuses does not hide what troubles the pods.
func TestFailuresDoNotHideTheTrouble(t *testing.T) {
	for _, done := range []action.Failures{{ScaleError: "no"}, {UpdateError: "no"}, {Blocked: "no"}} {
		w := given(t, 3).updated(1, gen.Waiting("ErrImagePull", now))
		assert.Equal(t, "no; ErrImagePull (web-new0, container main)", conditions.Get(w.status(done).Conditions, conditions.Ready).Message)
	}
}

// Past the deadline the message says so, too, and users are told once. Progressing keeps its words.
func TestTheDeadlineThatHasPassedIsNamed(t *testing.T) {
	pull := gen.Waiting("ErrImagePull", now)
	w := given(t, 2, since(599)).updated(1).updated(1, pull).rollingOut()
	assert.Empty(t, w.plan().Notices, "not yet")

	w = given(t, 2, since(600)).updated(1).updated(1, pull).rollingOut()
	message := "1 of 2 pods available, 2 of 2 updated; ErrImagePull (web-new1, container main); the progress deadline of 600s has passed"
	assert.Equal(t, []action.Notice{{Type: corev1.EventTypeWarning, Reason: v1beta1.ReasonDeadlineExceeded, Note: message, WithStatus: true}}, w.plan().Notices)
	w.set.Status = w.status(action.Failures{})
	stalled, progressing := conditions.Get(w.set.Status.Conditions, conditions.Stalled), conditions.Get(w.set.Status.Conditions, v1beta1.CloneSetProgressing)
	require.NotNil(t, stalled)
	assert.Equal(t, v1beta1.ReasonDeadlineExceeded, stalled.Reason)
	assert.Equal(t, message, stalled.Message)
	assert.Equal(t, message, conditions.Get(w.set.Status.Conditions, conditions.Ready).Message)
	assert.Equal(t, "CloneSet revision "+w.revisions[1].Name+" has timed out progressing", progressing.Message)
	assert.Empty(t, w.plan().Notices, "the status says so")

	w = given(t, 2, since(600)).updated(2).rollingOut()
	assert.Empty(t, w.plan().Notices, "it got there in the last moment")
	w = given(t, 2, since(600)).updated(2, pull)
	assert.Empty(t, w.plan().Notices, "a new revision starts a new clock")
}

func TestTurnsOfACrashLoopDoNotShow(t *testing.T) {
	t.Parallel()
	scenarios.CheckTurns(t, 20, func(t testing.TB, o cluster.Options) (*simulate.World, operator.Planner) {
		t.Helper()
		w, p := play(t, o, 3, image("app:crash"))
		t.Cleanup(func() {
			ready := conditions.Get(present(w).Status.Conditions, conditions.Ready)
			require.NotNil(t, ready)
			assert.Contains(t, ready.Message, "0 of 3 pods available, 3 of 3 updated; CrashLoopBackOff (web-")
		})
		return w, p
	})
}

// A pass that only tries again what is refused, in vain, says what the passes say in which it waits: it counts on what
// it tries. An edit is answered all the same, and a refusal that the conditions do not report yet.
func TestTriesInVainLeaveTheConditions(t *testing.T) {
	failed := func(conditionType string) []workload.Condition {
		return []workload.Condition{
			{Type: "Ready", Status: corev1.ConditionFalse, Message: "too large; web-0 is not ready"},
			{Type: conditionType, Status: corev1.ConditionTrue, Message: "too large"},
		}
	}
	waits := []workload.Condition{{Type: "Ready", Status: corev1.ConditionFalse, Message: "waits for others"}}
	for name, tt := range map[string]struct {
		before     []workload.Condition
		done       action.Failures
		generation int64
		stay       bool
	}{
		"a try":                        {before: waits},
		"nothing to report":            {before: waits, done: action.Failures{NoProgress: true}, stay: true},
		"an edit":                      {before: waits, done: action.Failures{NoProgress: true}, generation: 1},
		"an update that is reported":   {before: failed(v1beta1.CloneSetFailedUpdate), done: action.Failures{NoProgress: true, UpdateError: "too large"}, stay: true},
		"an update after conflicts":    {before: waits, done: action.Failures{NoProgress: true, UpdateError: "too large"}},
		"an update for another reason": {before: failed(v1beta1.CloneSetFailedUpdate), done: action.Failures{NoProgress: true, UpdateError: "no quota"}},
		"a creation that is reported":  {before: failed(v1beta1.CloneSetFailedScale), done: action.Failures{NoProgress: true, ScaleError: "too large"}, stay: true},
		"a creation that is not":       {before: waits, done: action.Failures{NoProgress: true, ScaleError: "too large"}},
		"a budget that is reported":    {before: failed(v1beta1.CloneSetFailedScale), done: action.Failures{NoProgress: true, Budget: "too large"}, stay: true},
		"a budget that is not":         {before: waits, done: action.Failures{NoProgress: true, Budget: "too large"}},
	} {
		w := given(t, 2).updated(1, unready)
		w.set.Status.Conditions = tt.before
		w.set.Status.ObservedGeneration = w.set.Generation
		w.set.Generation += tt.generation
		s := w.snapshot()
		after := Status(s, Compute(s), tt.done).Conditions
		assert.Equal(t, tt.stay, assert.ObjectsAreEqual(tt.before, after), "%s: %v", name, after)
	}
}
