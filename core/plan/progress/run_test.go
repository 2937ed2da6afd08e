package progress

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/plan/refusals"
)

var (
	now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	web = memory.Key{NamespacedName: types.NamespacedName{Namespace: "default", Name: "web"}, UID: "web"}
)

// server ends actions in the order in which they were started.
type server struct {
	answer   func(a *action.Action) Outcome // nil: all are done
	underWay []*Outcome
	most     int      // under way at a time
	tried    []string // the names
	ends     int      // starts no more than so many; 0 means all
}

func (s *server) writer() Writer {
	return Writer{Start: s.start, Wait: s.wait, Now: func() time.Time { return now }}
}

func (s *server) start(r *Outcome) bool {
	if s.ends > 0 && len(s.tried) == s.ends {
		return false
	}
	s.underWay, s.tried = append(s.underWay, r), append(s.tried, r.Action.Object.GetName())
	s.most = max(s.most, len(s.underWay))
	return true
}

func (s *server) wait() *Outcome {
	r := s.underWay[0]
	s.underWay = s.underWay[1:]
	a := r.Action
	*r = Outcome{State: Done}
	if s.answer != nil {
		*r = s.answer(a)
	}
	r.Action = a
	return r
}

func (s *server) run(steps ...action.Step) Result {
	return Run(steps, s.writer(), Options{Workload: web, Generation: 1, Refusals: &refusals.Tracker{}})
}

// creates are n creates of pods p0, p1, ...
func creates(n int) []action.Action {
	all := make([]action.Action, n)
	for i := range all {
		all[i] = action.Action{Verb: action.Create, Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p%d", i)}}}
	}
	return all
}

func TestStepsHaveNoMoreThanTheLimitUnderWay(t *testing.T) {
	for limit, want := range map[int]int{0: DefaultParallelism, 1: 1, 8: 8} {
		for _, slow := range []bool{false, true} {
			s := &server{}
			out := Run([]action.Step{{SlowStart: slow, Actions: creates(100)}}, s.writer(), Options{Workload: web, Refusals: &refusals.Tracker{}, Parallelism: limit})
			assert.Equal(t, 100, out.Done(action.Create))
			assert.Equal(t, want, s.most)
			assert.False(t, out.Incomplete)
		}
	}
}

// A slow start doubles what is under way in each round trip, another step begins with a few.
func TestOneMoreIsUnderWayWithEachSuccess(t *testing.T) {
	for slow, want := range map[bool][]int{true: {1, 2, 4, 8}, false: {4, 8, 16, 32, 32}} {
		p := newPace(slow, 0)
		for _, batch := range want {
			got := 0
			for ; p.mayStart(); got++ {
				p.started()
			}
			assert.Equal(t, batch, got)
			for range got {
				p.ended(&Outcome{State: Done})
			}
		}
	}
}

func TestWhatOneResultMeansForTheRest(t *testing.T) {
	refused := OutcomeOf(apierrors.NewForbidden(pods, "a", errors.New("quota")))
	tests := map[string]struct {
		result        Outcome
		tried, slowly int // of 100
	}{
		"done":                 {Outcome{State: Done}, 100, 100},
		"changed":              {OutcomeOf(apierrors.NewConflict(pods, "a", errors.New("changed"))), 100, 1},
		"outdated":             {Expired(&creates(1)[0]), 100, 1},
		"own name":             {OutcomeOf(apierrors.NewAlreadyExists(pods, "a")), 100, 1},
		"name of another":      {NameTaken("create", nil, &corev1.Pod{}, "of-web"), 100, 100},
		"claim that is in use": {ClaimMounted("delete", "web-0"), 100, 100},
		"refused":              {refused, initialParallelism + maxConsecutiveRefusals - 1, 1},
		"no right":             {OutcomeOf(apierrors.NewForbidden(pods, "a", errors.New(`User "u" cannot create resource "pods"`))), initialParallelism, 1},
		"no answer":            {OutcomeOf(errors.New("connection refused")), initialParallelism, 1},
		"namespace that ends":  {OutcomeOf(terminating()), initialParallelism, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for slow, want := range map[bool]int{false: test.tried, true: test.slowly} {
				s := &server{answer: func(*action.Action) Outcome { return test.result }}
				out := s.run(action.Step{SlowStart: slow, Actions: creates(100)})
				assert.Len(t, s.tried, want, "slow start: %t", slow)
				assert.Len(t, out.Outcomes, want)
				assert.Equal(t, want < 100, out.Incomplete)
			}
		})
	}
	t.Run("a success between refusals", func(t *testing.T) {
		s := &server{answer: func(a *action.Action) Outcome {
			if name := a.Object.GetName(); name == "p2" || name == "p5" {
				return Outcome{State: Done}
			}
			return refused
		}}
		s.run(action.Step{Actions: creates(100)})
		assert.Greater(t, len(s.tried), 8, "refusals are counted from the last success on")
	})
}

func TestWhatEndsAPlan(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod", UID: "pod"}}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim", UID: "claim"}}
	conflict, refused := OutcomeOf(apierrors.NewConflict(pods, "a", errors.New("changed"))), OutcomeOf(apierrors.NewForbidden(pods, "a", errors.New("no")))
	tests := map[string]struct {
		verb   action.Verb
		object action.Object
		result Outcome
		ends   bool
	}{
		"done":                        {action.PatchMetadata, claim, Outcome{State: Done}, false},
		"changed pod":                 {action.PatchMetadata, pod, conflict, false},
		"changed claim":               {action.PatchMetadata, claim, conflict, true},
		"refused pod":                 {action.PatchMetadata, pod, refused, false},
		"refused claim":               {action.PatchMetadata, claim, refused, true},
		"refused deletion":            {action.Delete, claim, refused, false},
		"changed claim to be deleted": {action.Delete, claim, conflict, true},
		"claim in use":                {action.Delete, claim, ClaimMounted("delete", "web-0"), false},
		"claim in use with an heir":   {action.Release, claim, ClaimMounted("release", "web-0"), false},
		"pod that is gone":            {action.Delete, pod, OutcomeOf(apierrors.NewNotFound(pods, "a")), true},
		"own pod that exists":         {action.Create, pod, OutcomeOf(apierrors.NewAlreadyExists(pods, "a")), true},
		"pod of another that exists":  {action.Create, pod, NameTaken("create", nil, &corev1.Pod{}, "of-web"), false},
		"outdated pod":                {action.PatchMetadata, pod, Expired(&action.Action{Object: pod}), false},
		"want of permission":          {action.PatchMetadata, pod, OutcomeOf(apierrors.NewForbidden(pods, "a", errors.New(`User "u" cannot patch resource "pods"`))), true},
		"no network":                  {action.Delete, pod, OutcomeOf(errors.New("connection refused")), true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := &server{answer: func(a *action.Action) Outcome {
				if a.Verb == test.verb && a.Object == test.object {
					return test.result
				}
				return Outcome{State: Done}
			}}
			first := action.Action{Verb: test.verb, Object: test.object, Independent: test.object == pod}
			out := s.run(action.Step{Actions: append(creates(2), first)}, action.Step{Actions: creates(1)})
			assert.Equal(t, test.ends, out.Incomplete)
			want := 4
			if test.ends {
				want = 3
			}
			assert.Len(t, s.tried, want, "a step runs to its end")
			out = s.run(action.Step{Actions: []action.Action{first}})
			assert.False(t, out.Incomplete, "no step is left")
			out = s.run(action.Step{Actions: []action.Action{first}, Optional: true}, action.Step{Actions: creates(1)})
			assert.Len(t, out.Outcomes, 2, "nothing builds on an optional step")
		})
	}
}

func TestNothingIsTriedOnceNothingCanBeStarted(t *testing.T) {
	s := &server{ends: 2}
	out := s.run(action.Step{Actions: creates(3)}, action.Step{Actions: creates(1)})
	assert.Equal(t, []string{"p0", "p1"}, s.tried)
	assert.Len(t, out.Outcomes, 2)
	assert.True(t, out.Incomplete)
}

// What is not done waits for its pause, and what is done for none.
func TestRefusalsAreRemembered(t *testing.T) {
	var memory refusals.Tracker
	actions := creates(1)
	run := func(result Outcome) Result {
		s := &server{answer: func(*action.Action) Outcome { return result }}
		return Run([]action.Step{{Actions: actions}}, s.writer(), Options{Workload: web, Generation: 1, Refusals: &memory})
	}
	known := func() action.Refusals { return memory.For(web, refusals.Observation{Now: now, Generation: 1}) }
	out := run(Expired(&actions[0]))
	assert.Equal(t, time.Second, out.RetryAfter)
	assert.Empty(t, known(), "nobody was asked")
	out = run(OutcomeOf(noEviction(7)))
	assert.Equal(t, 7*time.Second, out.RetryAfter)
	require.Contains(t, known(), actions[0].Purpose())
	const why = "Cannot evict pod as it would violate the pod's disruption budget."
	assert.Equal(t, action.Failures{Budget: why, Blocked: why}, out.Failures())
	assert.Equal(t, []Refusal{{Action: &actions[0], Message: why, RetryAfter: 7 * time.Second}}, out.Blocked)
	out = run(Outcome{State: Done})
	assert.Zero(t, out.RetryAfter)
	assert.Empty(t, known())
	out = run(OutcomeOf(apierrors.NewTooManyRequests("storage is (re)initializing", 1)))
	assert.Empty(t, out.Blocked, "the server is busy, and refuses nothing")
	assert.Equal(t, action.Failures{}, out.Failures())
	assert.Equal(t, time.Second, out.RetryAfter)
	require.Error(t, out.Err)
	assert.Empty(t, known())
}
