package progress

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/flotilla-project/flotilla/core/plan/action"
)

func TestResultTellsWhatFailed(t *testing.T) {
	ended := func(verb action.Verb, state State, text string) Outcome {
		r := Outcome{Action: &action.Action{Verb: verb}, State: state, Err: errors.New(text)}
		if state == Blocked || state == Failed {
			r.told = action.Told{Message: text}
		}
		return r
	}
	var o Result
	assert.Equal(t, action.Failures{}, o.Failures())
	mounted := Outcome{Action: &action.Action{Verb: action.Delete}, State: Blocked, Err: fmt.Errorf("delete: %w", errClaimMounted), told: action.Told{Message: "delete: it is mounted"}}
	o.add(mounted, time.Minute)
	assert.Equal(t, action.Failures{}, o.Failures(), "a claim that is mounted stays, which is no failure")
	for _, r := range []Outcome{
		ended(action.Create, Done, "ignored"), ended(action.Create, Stale, "ignored"), ended(action.Create, Failed, "no quota"),
		ended(action.Delete, Blocked, "a budget"), ended(action.UpdateInPlace, Failed, "no server"),
	} {
		o.add(r, time.Minute)
	}
	want := action.Failures{ScaleError: "a budget", UpdateError: "no server", Blocked: "a budget"}
	assert.Equal(t, want, o.Failures(), "of several texts the same one stays, whichever was tried last")
	byBudget := Outcome{Action: &action.Action{Verb: action.Delete}, State: Blocked, Err: errors.New("a budget"), told: action.Told{Message: "full", ByBudget: true}}
	assert.Equal(t, action.Failures{Budget: "full", Blocked: "a budget"}, (&Result{Outcomes: []Outcome{byBudget}}).Failures(), "that is no failure")
	assert.Equal(t, want, o.Failures().WithDeferred([]action.DeferredAction{{Verb: action.Create, Told: action.Told{Message: "no quota"}}}))
}

// A pass is in vain in which all that was tried had been refused before and was not done.
func TestPassesInVain(t *testing.T) {
	again, first := &action.Action{Verb: action.Delete, RefusedBefore: true}, &action.Action{Verb: action.Delete}
	for name, c := range map[string]struct {
		results []Outcome
		want    bool
	}{
		"nothing tried":              {nil, false},
		"refused for the first time": {[]Outcome{{Action: first, State: Blocked, Err: errors.New("no")}}, false},
		"refused again":              {[]Outcome{{Action: again, State: Blocked, Err: errors.New("no")}, {Action: again, State: Stale, Err: errors.New("no")}}, true},
		"and something done":         {[]Outcome{{Action: again, State: Blocked, Err: errors.New("no")}, {Action: first, State: Done}}, false},
		"taken at last":              {[]Outcome{{Action: again, State: Done}}, false},
	} {
		o := Result{Outcomes: c.results}
		assert.Equal(t, c.want, o.Failures().NoProgress, name)
	}
}
