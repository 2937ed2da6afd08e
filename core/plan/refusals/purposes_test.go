package refusals_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/refusals"
)

// The server does not know what an object is written for: what it has refused often is not tried faster for another
// purpose.
func TestANewPurposeOfAPodGoesOnWithThePauses(t *testing.T) {
	var m refusals.Tracker
	recreate, scaleIn := update("a", "1"), update("a", "1")
	recreate.Reason, scaleIn.Reason = "Recreate", "ScaleIn"
	for range 6 {
		m.RecordFailure(web, 1, &recreate, refusals.Failure{}, start)
	}
	m.RecordFailure(web, 1, &scaleIn, refusals.Failure{}, start)
	held := func(after time.Duration) bool {
		p := action.Plan{Now: start.Add(after), Refusals: m.For(web, refusals.Observation{Now: start.Add(after), Generation: 1})}
		return !p.MayTry(&scaleIn, nil)
	}
	assert.True(t, held(refusals.MaxPause-time.Second))

	conflict := update("a", "1")
	conflict.Reason = "Refresh"
	_, told := m.RecordFailure(web, 1, &conflict, refusals.Failure{Conflict: true, Message: "outdated"}, start)
	assert.Empty(t, told, "a first conflict is a first conflict")
}

// The pauses of an object grow with each refusal, whatever for, and also where nothing was tried for a while in between.
func TestThePausesOfAPodGrowWhateverItIsWrittenFor(t *testing.T) {
	for name, c := range map[string]struct {
		reasons []string
		later   time.Duration // how long after its turn each is tried
		want    time.Duration
	}{
		"one purpose":                       {reasons: []string{"Replace", "Replace", "Replace"}, want: 4 * time.Second},
		"one purpose, late":                 {reasons: []string{"Replace", "Replace", "Replace"}, later: time.Minute, want: 4 * time.Second},
		"another purpose":                   {reasons: []string{"Replace", "Replace", "Release"}, want: 2 * 4 * time.Second},
		"another purpose, late":             {reasons: []string{"Replace", "Replace", "Release"}, later: time.Minute, want: 4 * time.Second},
		"back to the first purpose":         {reasons: []string{"Replace", "Release", "Release", "Replace"}, want: 2 * 8 * time.Second},
		"back to the first purpose, late":   {reasons: []string{"Replace", "Release", "Release", "Replace"}, later: time.Minute, want: 8 * time.Second},
		"a third purpose, all of them late": {reasons: []string{"Replace", "Release", "Scale"}, later: time.Minute, want: 4 * time.Second},
		"long forgotten":                    {reasons: []string{"Replace", "Replace", "Release"}, later: 11 * time.Minute, want: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			var m refusals.Tracker
			now, until := start, start
			for _, reason := range c.reasons {
				a := update("a", "1")
				a.Reason = reason
				now = until.Add(c.later)
				m.For(web, refusals.Observation{Now: now, Generation: 1})
				m.RecordFailure(web, 1, &a, refusals.Failure{}, now)
				until = m.For(web, refusals.Observation{Now: now, Generation: 1})[a.Purpose()].Targets[a.Target()].Until
			}
			assert.Equal(t, c.want, until.Sub(now))
		})
	}
}
