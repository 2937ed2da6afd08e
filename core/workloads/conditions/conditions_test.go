package conditions_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/workloads/conditions"
)

var (
	early = metav1.NewTime(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC))
	late  = metav1.NewTime(early.Add(time.Minute))
)

func TestTimesMoveOnlyWithWhatTheySpeakOf(t *testing.T) {
	start := workload.Condition{Type: "Progressing", Status: corev1.ConditionTrue, Reason: "A", Message: "m"}
	tests := []struct {
		name                    string
		next                    workload.Condition
		wantUpdate, wantChanged metav1.Time
	}{
		{"another message moves nothing", workload.Condition{Type: "Progressing", Status: corev1.ConditionTrue, Reason: "A", Message: "n"}, early, early},
		{"another reason is an update", workload.Condition{Type: "Progressing", Status: corev1.ConditionTrue, Reason: "B"}, late, early},
		{"another status is a transition", workload.Condition{Type: "Progressing", Status: corev1.ConditionFalse, Reason: "A"}, late, late},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			list := conditions.Set(nil, start, early)
			before := conditions.Set(nil, start, early)
			next := conditions.Set(list, tt.next, late)
			got := conditions.Get(next, "Progressing")
			assert.Equal(t, tt.wantUpdate, got.LastUpdateTime)
			assert.Equal(t, tt.wantChanged, got.LastTransitionTime)
			assert.Equal(t, tt.next.Message, got.Message)
			assert.Equal(t, before, list, "the given list was changed")
		})
	}
}

func TestSummaryIsWhatKstatusReads(t *testing.T) {
	status := func(list []workload.Condition, name string) corev1.ConditionStatus {
		if c := conditions.Get(list, name); c != nil {
			return c.Status
		}
		return ""
	}
	foreign := []workload.Condition{{Type: "Foreign", Status: corev1.ConditionTrue}}
	list := conditions.Summarize(foreign, conditions.Summary{Reason: "Progressing"}, early)
	assert.Equal(t, corev1.ConditionFalse, status(list, conditions.Ready))
	assert.Equal(t, corev1.ConditionTrue, status(list, conditions.Reconciling))
	assert.Empty(t, status(list, conditions.Stalled))

	list = conditions.Summarize(list, conditions.Summary{Stalled: true, Reason: "InvalidSpec"}, late)
	assert.Equal(t, corev1.ConditionFalse, status(list, conditions.Ready))
	assert.Empty(t, status(list, conditions.Reconciling))
	assert.Equal(t, corev1.ConditionTrue, status(list, conditions.Stalled))

	list = conditions.Summarize(list, conditions.Summary{Done: true, Reason: "Available"}, late)
	assert.Equal(t, corev1.ConditionTrue, status(list, conditions.Ready))
	assert.Empty(t, status(list, conditions.Reconciling))
	assert.Empty(t, status(list, conditions.Stalled))
	assert.Equal(t, corev1.ConditionTrue, status(list, "Foreign"), "conditions of others stay")
}

func TestFailuresComeAndGo(t *testing.T) {
	list := conditions.SetFailure(nil, "FailedScale", "no quota", metav1.Time{})
	assert.Equal(t, workload.Condition{Type: "FailedScale", Status: corev1.ConditionTrue, Reason: "Error", Message: "no quota"}, *conditions.Get(list, "FailedScale"))
	assert.Nil(t, conditions.Get(conditions.SetFailure(list, "FailedScale", "", metav1.Time{}), "FailedScale"))
}

func TestOnlyErrorsSayThatTheServerRefusedSomething(t *testing.T) {
	failed := func(reason string) []action.Verb {
		list := []workload.Condition{{Type: "FailedScale", Status: corev1.ConditionTrue, Reason: reason}, {Type: "FailedUpdate", Status: corev1.ConditionFalse, Reason: reason}}
		return conditions.RefusedVerbs(list, "FailedScale", "FailedUpdate")
	}
	assert.Equal(t, []action.Verb{action.Create}, failed(conditions.ReasonError))
	assert.Empty(t, failed("ClaimTemplateRemoved"), "nothing was tried")
}

func TestTheFirstFailureIsTheReason(t *testing.T) {
	before := conditions.Summary{Reason: "Progressing", Message: "1 of 2 pods available"}
	for name, c := range map[string]struct {
		done action.Failures
		want conditions.Summary
	}{
		"nothing failed": {action.Failures{}, before},
		"all failed":     {action.Failures{ScaleError: "scale", UpdateError: "update", Budget: "budget", Blocked: "blocked"}, conditions.Summary{Reason: "FailedScale", Message: "scale; in trouble"}},
		"an update":      {action.Failures{UpdateError: "update", Blocked: "blocked"}, conditions.Summary{Reason: "FailedUpdate", Message: "update; in trouble"}},
		"a small node":   {action.Failures{UpdateError: "update", NodeTooSmall: true, Budget: "budget"}, conditions.Summary{Reason: "NodeTooSmall", Message: "update; in trouble"}},
		"a budget":       {action.Failures{Budget: "budget", Blocked: "blocked"}, conditions.Summary{Reason: "BlockedByBudget", Message: "budget; in trouble"}},
		"a webhook":      {action.Failures{Blocked: "blocked"}, conditions.Summary{Reason: "Blocked", Message: "blocked; in trouble"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := before
			assert.Equal(t, before != c.want, s.ReportFailures(c.done, "; in trouble"))
			assert.Equal(t, c.want, s)
		})
	}
}
