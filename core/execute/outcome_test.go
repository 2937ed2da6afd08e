package execute

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/flotilla-project/flotilla/core/action"
)

func TestResultTellsWhatFailed(t *testing.T) {
	ended := func(verb action.Verb, state State, text string) Result {
		return Result{Action: &action.Action{Verb: verb}, State: state, Err: errors.New(text)}
	}
	var o Outcome
	assert.Equal(t, action.Result{}, o.Result())
	for _, r := range []Result{
		ended(action.Create, Done, "ignored"), ended(action.Create, Stale, "ignored"), ended(action.Create, Failed, "no quota"),
		ended(action.Delete, Blocked, "a budget"), ended(action.UpdateInPlace, Failed, "no server"),
	} {
		o.add(r)
	}
	assert.Equal(t, action.Result{ScaleError: "no quota (and 1 more)", UpdateError: "no server", Blocked: "a budget"}, o.Result())
}
