package progress

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/refusals"
)

// slices are passes that have the time for some actions each, and remember the pace.
type slices struct {
	Options
	size int
}

func newSlices(size int) *slices {
	return &slices{Options: Options{Workload: web, Generation: 1, Refusals: &refusals.Tracker{}, Paces: &Paces{}}, size: size}
}

func (s *slices) run(on *server, steps ...action.Step) Result {
	left := s.size
	s.Spent = func(share float64) bool {
		left--
		return left <= int(float64(s.size)*(1-share))
	}
	return Run(steps, on.writer(), s.Options)
}

// A pass ends when its time is used up, but not before it has done something: with passes of any length a plan comes
// to its end.
func TestAPassWhoseTimeIsUpLeavesTheRestToTheNextOne(t *testing.T) {
	for size, want := range map[int]int{0: 1, 1: 1, 2: 2, 7: 7} {
		s := &server{}
		out := newSlices(size).run(s, action.Step{Name: "one", Actions: creates(5)}, action.Step{Name: "two", Actions: creates(5)})
		assert.Len(t, s.tried, want)
		assert.Equal(t, want, out.Done(action.Create))
		assert.True(t, out.Spent && out.Incomplete)
		require.NoError(t, out.Err)
		assert.False(t, out.Failures().NoProgress, "there is more to try")
	}
	out := newSlices(10).run(&server{}, action.Step{Name: "one", Actions: creates(5)}, action.Step{Name: "two", Actions: creates(5)})
	assert.False(t, out.Spent || out.Incomplete, "nothing was left")
}

// A step on which no other depends leaves half of the time to those after it.
func TestAStepApartLeavesTimeToTheOthers(t *testing.T) {
	for _, test := range []struct{ apart, others, wantApart, wantOthers int }{
		{20, 20, 5, 4}, {2, 20, 2, 8}, {20, 2, 5, 2}, {20, 0, 10, 0},
	} {
		steps := []action.Step{{Name: "apart", Apart: true, Actions: creates(test.apart)}}
		if test.others > 0 {
			steps = append(steps, action.Step{Name: "others", Actions: creates(test.others)})
		}
		out := newSlices(10).run(&server{}, steps...)
		begun := map[*action.Action]bool{}
		for i := range out.Outcomes {
			begun[out.Outcomes[i].Action] = true
		}
		got := make([]int, 2)
		for i := range steps {
			for k := range steps[i].Actions {
				if begun[&steps[i].Actions[k]] {
					got[i]++
				}
			}
		}
		assert.Equal(t, []int{test.wantApart, test.wantOthers}, got, "%+v", test)
		assert.True(t, out.Spent && out.Incomplete, "another pass goes on")
	}
}

// A step that leaves out some of what is wanted is gone on with, in the pace that it had, unless an action of it has
// failed. What comes after it waits.
func TestAStepWithMoreIsGoneOnWith(t *testing.T) {
	first := action.Step{Name: "grow", SlowStart: true, More: true, Actions: creates(8)}
	s, on := newSlices(100), &server{}
	out := s.run(on, first, action.Step{Name: "then", Actions: creates(1)})
	assert.Len(t, on.tried, 8)
	assert.True(t, out.Spent)
	rest := &server{}
	out = s.run(rest, action.Step{Name: "grow", SlowStart: true, Actions: creates(20)})
	assert.Equal(t, 14, rest.most, "it does not start anew")
	assert.False(t, out.Spent)

	refuses := &server{answer: func(*action.Action) Outcome { return OutcomeOf(apierrors.NewForbidden(pods, "a", assert.AnError)) }}
	assert.False(t, newSlices(100).run(refuses, first).Spent, "the rest would fare no better")
}

// What ends the plan for another reason is no matter of time: it is not tried again at once.
func TestAFailureIsNoMatterOfTime(t *testing.T) {
	s := &server{answer: func(*action.Action) Outcome { return OutcomeOf(apierrors.NewInternalError(assert.AnError)) }}
	out := newSlices(3).run(s, action.Step{Name: "one", Actions: creates(5)})
	assert.False(t, out.Spent)
	assert.True(t, out.Incomplete)
	require.Error(t, out.Err)
}

// A slow start goes on in the next pass with as many actions under way, unless one has failed, the step has ended or
// the workload was edited since.
func TestASlowStartGoesOnInTheNextPass(t *testing.T) {
	grow, other := action.Step{Name: "grow", SlowStart: true, Actions: creates(100)}, action.Step{Name: "other", Actions: creates(3)}
	most := func(s *slices, steps ...action.Step) int {
		on := &server{}
		s.size = 100
		s.run(on, steps...)
		return on.most
	}
	begun := func() *slices {
		s := newSlices(8)
		s.run(&server{}, grow)
		return s
	}
	short := action.Step{Name: grow.Name, SlowStart: true, Actions: creates(9)}
	assert.Equal(t, 5, most(newSlices(8), short), "a new start")
	assert.Equal(t, 9, most(begun(), short))
	assert.Equal(t, 5, most(begun(), action.Step{Name: "another", SlowStart: true, Actions: creates(9)}))

	s := begun()
	s.size = 2
	s.run(&server{}, other, grow)
	assert.Equal(t, 9, most(s, short), "it was not reached")
	assert.Equal(t, 5, most(s, short), "it has ended")

	s = begun()
	s.size = 2
	s.run(&server{answer: func(*action.Action) Outcome { return OutcomeOf(apierrors.NewForbidden(pods, "a", assert.AnError)) }}, grow)
	assert.Equal(t, 5, most(s, short), "an action has failed")

	s = begun()
	s.Generation++
	assert.Equal(t, 5, most(s, short), "an edit")

	s = begun()
	s.Paces.Forget(web.NamespacedName)
	assert.Equal(t, 5, most(s, short), "it is gone")
}
