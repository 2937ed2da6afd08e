package refusals_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/refusals"
)

// answered are the moments, in seconds, at which a pass each second tries the action, which meets one failure after the other.
func answered(seconds int, a action.Action, next func(try int) refusals.Failure) []int {
	var m refusals.Tracker
	var tried []int
	for s := range seconds {
		now := start.Add(time.Duration(s) * time.Second)
		p := action.Plan{Now: now, Refusals: m.For(web, refusals.Observation{Now: now, Generation: 1})}
		if p.MayTry(&a, nil) {
			m.RecordFailure(web, 1, &a, next(len(tried)), now)
			tried = append(tried, s)
		}
	}
	return tried
}

// The server's answers may change from one try to the next, for instance from a conflict to a budget's refusal. The
// pauses go on growing.
func TestAnotherAnswerShortensNoPause(t *testing.T) {
	answers := map[string]refusals.Failure{
		"refused": {}, "conflict": {Conflict: true}, "budget": {ByBudget: true}, "unclear": {MayHaveSucceeded: true}, "isolated": {Isolated: true},
	}
	for first, f := range answers {
		for then, g := range answers {
			for turn := range 8 {
				tried := answered(100, update("a", "1"), func(try int) refusals.Failure {
					if try < turn {
						return f
					}
					return g
				})
				require.Equal(t, []int{0, 1, 3, 7, 15, 31, 61, 91}, tried, "%d times %s, then %s", turn, first, then)
			}
		}
	}
}

// In whichever order the answers come, late ones among them, the action is not tried more often.
func TestAnswersInAnyOrderAreAsRare(t *testing.T) {
	answers := []refusals.Failure{{}, {Conflict: true}, {ByBudget: true}, {MayHaveSucceeded: true}, {Isolated: true}, {Late: true}, {ByBudget: true, Late: true}}
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 1))
		tried := answered(100, update("a", "1"), func(int) refusals.Failure { return answers[rng.IntN(len(answers))] })
		require.LessOrEqual(t, len(tried), 8, "seed %d: %v", seed, tried)
	}
}
