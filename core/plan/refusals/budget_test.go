package refusals_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/refusals"
)

// A budget is asked for all pods: what it says to several at once is one answer, and what it grants to one ends the pauses
// of the others, however often it had refused them.
func TestABudgetIsAskedForAllPods(t *testing.T) {
	var m refusals.Tracker
	pods := []action.Action{update("a", "1"), update("b", "1"), update("c", "1")}
	now := start
	known := func() action.RefusedPurpose {
		return m.For(web, refusals.Observation{Now: now, Generation: 1})[pods[0].Purpose()]
	}
	for i := range pods {
		m.RecordFailure(web, 1, &pods[i], refusals.Failure{ByBudget: true, Message: "full"}, now)
	}
	assert.Equal(t, time.Second, known().Until.Sub(now))
	for range 8 {
		now = known().Until
		m.RecordFailure(web, 1, &pods[1], refusals.Failure{ByBudget: true, Message: "full"}, now)
	}
	require.Equal(t, refusals.MaxPause, known().Until.Sub(now).Round(2*time.Second))
	require.Equal(t, action.Told{Message: "full", ByBudget: true}, known().Told)
	assert.True(t, known().OnlyByBudget)
	assert.True(t, m.For(web, refusals.Observation{Now: now, Generation: 1}).ByBudget(pods[1].Object.(*corev1.Pod)))
	m.RecordSuccess(web, &pods[0])
	assert.False(t, known().Probing)
	for i := range pods[1:] {
		assert.LessOrEqual(t, known().Targets[pods[1+i].Target()].Until.Sub(now), time.Second)
	}
	m.RecordFailure(web, 1, &pods[1], refusals.Failure{ByBudget: true}, now)
	assert.Equal(t, time.Second, known().Until.Sub(now), "they begin anew")
}

// A pod that had left service before a budget refused is not taken out of service to ask again.
func TestWhatABudgetRefusesTooLateIsRehearsed(t *testing.T) {
	var m refusals.Tracker
	a := update("a", "1")
	m.RecordFailure(web, 1, &a, refusals.Failure{ByBudget: true, Late: true}, start)
	m.RecordFailure(web, 1, &a, refusals.Failure{ByBudget: true}, start)
	assert.False(t, m.For(web, refusals.Observation{Now: start, Generation: 1})[a.Purpose()].OnlyByBudget)
}

// The next write for a pod in its grace period, which is out of service, would be two writes for a pod that serves again.
func TestWhatABudgetRefusesOutOfServiceIsRehearsed(t *testing.T) {
	var m refusals.Tracker
	a := update("a", "1")
	for _, a.OutOfService = range []bool{true, false} {
		m.RecordFailure(web, 1, &a, refusals.Failure{ByBudget: true}, start)
		assert.False(t, m.For(web, refusals.Observation{Now: start, Generation: 1})[a.Purpose()].OnlyByBudget)
	}
}

// However many budgets cover pods of a workload, one that is used up does not keep others from being asked.
func TestBudgetsAreAskedInTurn(t *testing.T) {
	var m refusals.Tracker
	pods := []action.Action{update("a", "1"), update("b", "1"), update("c", "1"), update("d", "1")}
	tried := map[string]int{}
	for s := range 600 {
		now := start.Add(time.Duration(s) * time.Second)
		p := action.Plan{Now: now, Refusals: m.For(web, refusals.Observation{Now: now, Generation: 1})}
		p.Add(action.Step{Actions: pods})
		p = action.Admit(p)
		for _, step := range p.Steps {
			for i := range step.Actions {
				m.RecordFailure(web, 1, &step.Actions[i], refusals.Failure{ByBudget: true}, now)
				tried[step.Actions[i].Object.GetName()]++
			}
		}
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		assert.GreaterOrEqual(t, tried[name], 3, "%v", tried)
	}
}

// A budget counts a pod that becomes available a moment after the operator has seen it. Who asks at once is refused again, and
// waits for the next pause.
func TestABudgetIsAskedTwoSecondsAfterAPodIsAvailable(t *testing.T) {
	var m refusals.Tracker
	a := update("a", "1")
	pods := 0
	may := func(after time.Duration) bool {
		now := start.Add(after)
		p := action.Plan{Now: now, Refusals: m.For(web, refusals.Observation{Now: now, Generation: 1, Available: func() int { return pods }})}
		return p.MayTry(&a, nil)
	}
	for _, after := range []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second, 15 * time.Second} {
		m.RecordFailure(web, 1, &a, refusals.Failure{ByBudget: true}, start.Add(after))
	}
	assert.False(t, may(20*time.Second))
	pods++
	assert.False(t, may(21*time.Second))
	pods++
	assert.False(t, may(22*time.Second+999*time.Millisecond))
	pods++
	assert.True(t, may(23*time.Second), "more pods do not put it off")
}
