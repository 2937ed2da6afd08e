package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/scenarios"
	"github.com/flotilla-project/flotilla/core/testing/simulate"
	"github.com/flotilla-project/flotilla/core/workloads/conditions"
	"github.com/flotilla-project/flotilla/core/workloads/podupdate"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// The message names what troubles one pod, that of the lowest ordinal; how many are not available it says anyway.
func TestMessagesNameTheTrouble(t *testing.T) {
	pull, crash := gen.Waiting("ImagePullBackOff", now), gen.Waiting("CrashLoopBackOff", now)
	rows := map[string]struct {
		give            *world
		reason, message string
	}{
		"a pull":             {given(t, 3).updated(at(0, 1)).updated(at(2), pull), v1beta1.ReasonRollingOut, "2 of 3 pods available, 3 updated; ErrImagePull (web-2, container main)"},
		"the lowest ordinal": {given(t, 3).updated(at(0)).updated(at(2), pull).updated(at(1), crash), v1beta1.ReasonRollingOut, "1 of 3 pods available, 3 updated; CrashLoopBackOff (web-1, container main)"},
		"no node": {given(t, 1).updated(at(0), gen.Unschedulable("Unschedulable", now)), v1beta1.ReasonRollingOut,
			"0 of 1 pods available, 1 updated; Unschedulable (web-0)"},
		"of the update": {given(t, 2, partition(1)).old(at(0), crash).updated(at(1), pull), v1beta1.ReasonRollingOut,
			"0 of 2 pods available, 1 updated; ErrImagePull (web-1, container main)"},
		"in order": {given(t, 2, inOrder()).updated(at(0), gen.Waiting("ErrImagePull", now.Add(-time.Second))), v1beta1.ReasonBlockedByUnavailablePods,
			"0 of 2 pods available, 1 updated; ErrImagePull (web-0, container main); BlockedByUnavailablePods web-0: pods are created and deleted in order; not available yet: web-0"},
		"none": {given(t, 2).updated(at(0)).updated(at(1), unready), v1beta1.ReasonRollingOut, "1 of 2 pods available, 2 updated"},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			for _, kind := range []string{conditions.Ready, conditions.Reconciling} {
				c := condition(t, r.give, kind)
				assert.Equal(t, r.reason, c.Reason)
				assert.Equal(t, r.message, c.Message)
			}
		})
	}
}

// What the server refuses does not hide what troubles the pods.
func TestFailuresDoNotHideTheTrouble(t *testing.T) {
	for _, done := range []action.Failures{{ScaleError: "no"}, {UpdateError: "no"}, {Blocked: "no"}} {
		s := given(t, 3).updated(at(0), gen.Waiting("ErrImagePull", now)).snapshot()
		assert.Equal(t, "no; ErrImagePull (web-0, container main)", conditions.Get(Status(s, Compute(s), done).Conditions, conditions.Ready).Message)
	}
}

// What stalls a set is told with what troubles its pods.
func TestStalledNamesTheTrouble(t *testing.T) {
	w := given(t, 2, policy(v1beta1.InPlaceOnly)).edited(func(s *v1beta1.StatefulSet) {
		s.Spec.Template.Spec.Containers[0].Command = []string{"other"}
	}).changed().old(at(0)).old(at(1), gen.Waiting("CrashLoopBackOff", now))
	stalled := condition(t, w, conditions.Stalled)
	assert.Contains(t, stalled.Message, "1 of 2 pods available, 0 updated; CrashLoopBackOff (web-1, container main); ")
}

// A pod that has no way in place is told of whether or not there is room for it, so that other pods in and out of
// service do not change the status.
func TestPodsWithoutAWayAreToldOfWithoutRoom(t *testing.T) {
	other := func(s *v1beta1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Command = []string{"other"} }
	for _, o := range [][]gen.PodOption{nil, {unready}} {
		w := given(t, 2, policy(v1beta1.InPlaceOnly), partition(0)).edited(other).changed().updated(at(0), o...).old(at(1))
		assert.Equal(t, []string{podupdate.WaitNotInPlace + " web-1"}, w.waits())
	}
}

// Pods that have no way in place end first what they had begun. The event is not told again when the condition names another
// of them meanwhile, but it is for another template.
func TestPodsWithoutAWayAreToldOfOnce(t *testing.T) {
	other := func(s *v1beta1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Command = []string{"other"} }
	w := given(t, 2, policy(v1beta1.InPlaceOnly)).edited(other).changed().updated(at(0)).old(at(1))
	require.Len(t, w.plan().Notices, 1)
	w.set.Status = w.status()
	progress := conditions.Get(w.set.Status.Conditions, v1beta1.StatefulSetProgressing)
	require.Contains(t, progress.Message, "web-1")
	progress.Message = strings.ReplaceAll(progress.Message, "web-1", "web-0")
	assert.Empty(t, w.plan().Notices)
	w.set.Status.UpdateRevision = "web-another"
	assert.Len(t, w.plan().Notices, 1)
}

// The event that tells of a long wait names the trouble; condition Progressing keeps its words.
func TestTheEventOfALongWaitNamesTheTrouble(t *testing.T) {
	w := given(t, 2, inOrder()).updated(at(0), gen.Waiting("ErrImagePull", now.Add(-2*time.Minute)))
	notices := w.plan().Notices
	require.Len(t, notices, 1)
	message := condition(t, w, v1beta1.StatefulSetProgressing).Message
	assert.NotContains(t, message, "ErrImagePull")
	assert.Equal(t, message+"; ErrImagePull (web-0, container main)", notices[0].Note)
	w.set.Status = w.status()
	assert.Empty(t, w.plan().Notices)
}

func TestTurnsOfACrashLoopDoNotShow(t *testing.T) {
	t.Parallel()
	scenarios.CheckTurns(t, 20, func(t testing.TB, o cluster.Options) (*simulate.World, operator.Planner) {
		t.Helper()
		w, p := play(t, o, 3, image("app:crash"))
		t.Cleanup(func() {
			ready := conditions.Get(present(w).Status.Conditions, conditions.Ready)
			require.NotNil(t, ready)
			assert.Equal(t, "0 of 3 pods available, 3 updated; CrashLoopBackOff (web-0, container main)", ready.Message)
		})
		return w, p
	})
}

// A pass that only tries again what is refused, in vain, says what the passes say in which it waits: it counts on what
// it tries. An edit is answered all the same.
func TestTriesInVainLeaveTheConditions(t *testing.T) {
	w := given(t, 2).updated(at(0), unready)
	w.set.Status.Conditions = []workload.Condition{{Type: "Ready", Status: corev1.ConditionFalse, Message: "as it was"}}
	w.set.Status.ObservedGeneration = w.set.Generation
	status := func(done action.Failures) []workload.Condition {
		s := w.snapshot()
		return Status(s, Compute(s), done).Conditions
	}
	assert.Equal(t, w.set.Status.Conditions, status(action.Failures{NoProgress: true}))
	assert.NotEqual(t, w.set.Status.Conditions, status(action.Failures{}))
	w.set.Generation++
	assert.NotEqual(t, w.set.Status.Conditions, status(action.Failures{NoProgress: true}))
}
