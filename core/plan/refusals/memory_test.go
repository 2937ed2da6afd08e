package refusals_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/plan/refusals"
)

var (
	web   = memory.Key{NamespacedName: types.NamespacedName{Namespace: "default", Name: "web"}, UID: "web"}
	start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

func update(pod, version string) action.Action {
	return action.Action{Verb: action.UpdateInPlace, Reason: "Update", Independent: true, Object: &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: pod, UID: types.UID(pod), ResourceVersion: version},
	}, Patches: []action.Patch{{Subresource: "status"}, {}}}
}

// attempts are the moments, in seconds, at which a pass each second tries the actions, all of which fail.
func attempts(seconds int, f refusals.Failure, actions ...action.Action) []int {
	var m refusals.Tracker
	var tried []int
	for s := range seconds {
		now := start.Add(time.Duration(s) * time.Second)
		p := action.Plan{Now: now, Refusals: m.For(web, refusals.Observation{Now: now, Generation: 1})}
		p.Add(action.Step{Actions: actions})
		p = action.Admit(p)
		for _, step := range p.Steps {
			for i := range step.Actions {
				m.RecordFailure(web, 1, &step.Actions[i], f, now)
				tried = append(tried, s)
			}
		}
	}
	return tried
}

func TestPausesGrow(t *testing.T) {
	create := action.Action{Verb: action.Create, GeneratedName: true, Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-x", GenerateName: "web-"}}}
	assert.Equal(t, []int{0, 1, 3, 7, 15, 31, 61, 91}, attempts(100, refusals.Failure{}, create))
	assert.Equal(t, []int{0, 10, 30, 60, 90}, attempts(100, refusals.Failure{Late: true}, update("a", "1")))
	assert.Equal(t, []int{0, 1, 3, 7, 15, 31, 61, 91}, attempts(100, refusals.Failure{ByBudget: true}, update("a", "1")))
	assert.Equal(t, []int{0, 5, 10}, attempts(14, refusals.Failure{RetryAfter: 5 * time.Second}, create))
	assert.Equal(t, []int{0, 1, 3, 7, 15, 31, 61, 91}, attempts(100, refusals.Failure{Conflict: true}, update("a", "1")))
}

// However many pods are refused, in the long run one of them is tried twice a minute.
func TestRefusedPodsTakeTurns(t *testing.T) {
	tried := attempts(1200, refusals.Failure{Late: true}, update("a", "1"), update("b", "1"), update("c", "1"), update("d", "1"))
	late := slices.DeleteFunc(slices.Clone(tried), func(s int) bool { return s < 600 })
	assert.LessOrEqual(t, len(late), 20, "tried at %v", tried)
	assert.GreaterOrEqual(t, len(late), 18)
}

// A conflict on a create, which has no version, is likely to be in the way of the others, too. However many are
// wanted, they are tried ten times in the first ten seconds, and twice a minute in the long run.
func TestConflictsOfCreatesTakeTurns(t *testing.T) {
	var creates []action.Action
	for i := range 10 {
		creates = append(creates, action.Action{Verb: action.Create, Reason: "ScaleOut", Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("web-%d", i)}}})
	}
	tried := attempts(1200, refusals.Failure{Conflict: true}, creates...)
	early := slices.DeleteFunc(slices.Clone(tried), func(s int) bool { return s >= 10 })
	late := slices.DeleteFunc(slices.Clone(tried), func(s int) bool { return s < 600 })
	assert.LessOrEqual(t, len(early), 10, "tried at %v", tried)
	assert.LessOrEqual(t, len(late), 20, "tried at %v", tried)
	assert.GreaterOrEqual(t, len(late), 18)
}

// A create that meets a conflict a few times is nothing to tell of: perhaps the cache does not show yet what stands
// there.
func TestConflictsOfCreatesAreToldLate(t *testing.T) {
	var m refusals.Tracker
	create := action.Action{Verb: action.Create, Reason: "ScaleOut", Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0"}}}
	for i, want := range []bool{false, false, false, true} {
		_, told := m.RecordFailure(web, 1, &create, refusals.Failure{Conflict: true, Message: "no"}, start.Add(time.Duration(i)*time.Minute))
		assert.Equal(t, want, told.Message != "")
		p := action.Plan{Now: start, Refusals: m.For(web, refusals.Observation{Now: start, Generation: 1})}
		other := action.Action{Verb: action.Create, Reason: "ScaleOut", Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-1"}}}
		assert.False(t, p.MayTry(&other, nil))
		p.Add(action.Step{Actions: []action.Action{create, other}})
		p = action.Admit(p)
		assert.Empty(t, p.Steps)
		assert.Equal(t, want, len(p.Deferred) > 0)
		assert.Len(t, p.Waits, 2, "whatever waits has a reason")
	}
}

// The name of a pod is in the way of that pod alone.
func TestTakenNamesHoldNoOthers(t *testing.T) {
	var m refusals.Tracker
	create := func(name string) *action.Action {
		return &action.Action{Verb: action.Create, Reason: "ScaleOut", Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}}
	}
	for _, f := range []refusals.Failure{{Conflict: true, Isolated: true}, {Isolated: true}} {
		m.RecordFailure(web, 1, create("web-0"), f, start)
		p := action.Plan{Now: start, Refusals: m.For(web, refusals.Observation{Now: start, Generation: 1})}
		assert.False(t, p.MayTry(create("web-0"), nil))
		assert.True(t, p.MayTry(create("web-1"), nil))
	}
}

// For however many purposes a pod is refused, in the long run it is tried twice a minute, for each of them in turn.
func TestPurposesOfAPodTakeTurns(t *testing.T) {
	for _, f := range []refusals.Failure{{}, {Late: true}, {Conflict: true}} {
		next, other := update("a", "1"), update("a", "1")
		next.Reason = "Refresh"
		tried := attempts(1200, f, next, other)
		late := slices.DeleteFunc(slices.Clone(tried), func(s int) bool { return s < 600 })
		assert.LessOrEqual(t, len(late), 20, "tried at %v", tried)
		assert.GreaterOrEqual(t, len(late), 18)
	}
}

func TestSuccessFreesOthers(t *testing.T) {
	var m refusals.Tracker
	a, b := update("a", "1"), update("b", "1")
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	for s := range 3 {
		m.RecordFailure(web, 1, &a, refusals.Failure{Late: true}, at(40*s))
		m.RecordFailure(web, 1, &b, refusals.Failure{Late: true}, at(40*s))
	}
	held := func(now time.Time, generation int64, x action.Action) bool {
		p := action.Plan{Now: now, Refusals: m.For(web, refusals.Observation{Now: now, Generation: generation})}
		return !p.MayTry(&x, nil)
	}
	require.True(t, held(at(100), 1, a))
	require.True(t, held(at(81), 1, update("c", "1")), "what was never tried waits for the like of it")
	m.RecordSuccess(web, &b)
	assert.False(t, held(at(100), 1, update("c", "1")))
	assert.True(t, held(at(109), 1, a), "half a minute after its last try")
	assert.False(t, held(at(110), 1, a))
	assert.False(t, held(at(100), 2, a), "an edit takes effect at once")
}

// After a hiccup of the server, which refused many for once, all go on as soon as one is taken.
func TestSuccessEndsTheTurns(t *testing.T) {
	var m refusals.Tracker
	pods := []action.Action{update("a", "1"), update("b", "1"), update("c", "1"), update("d", "1")}
	for i := range pods {
		m.RecordFailure(web, 1, &pods[i], refusals.Failure{Late: true}, start)
	}
	now := start.Add(10 * time.Second)
	held := func() (n int) {
		p := action.Plan{Now: now, Refusals: m.For(web, refusals.Observation{Now: now, Generation: 1})}
		p.Add(action.Step{Name: "update", Actions: pods})
		return len(pods) - p.Tries("update")
	}
	require.Equal(t, 3, held())
	m.RecordSuccess(web, &pods[0])
	assert.Zero(t, held())
}

// The turns of what nobody wants any more are nobody's: not of another pod, and not of the pod for another purpose.
func TestWhatIsNoLongerWantedHasNoTurn(t *testing.T) {
	var m refusals.Tracker
	wanted, other, purpose := update("a", "1"), update("b", "1"), update("a", "1")
	purpose.Reason = "Refresh"
	for _, a := range []action.Action{other, purpose} {
		m.RecordFailure(web, 1, &a, refusals.Failure{Late: true}, start)
	}
	now := start.Add(5 * time.Minute)
	for range 4 {
		m.RecordFailure(web, 1, &wanted, refusals.Failure{Late: true}, now)
	}
	known := m.For(web, refusals.Observation{Now: now, Generation: 1})[wanted.Purpose()]
	assert.Equal(t, refusals.MaxPause, known.Targets[wanted.Target()].Until.Sub(now))
}

// One action that is refused again and again does not keep others from being tried for the first time.
func TestWhatWasNeverTriedHasItsTurn(t *testing.T) {
	var m refusals.Tracker
	pods := []action.Action{update("a", "1"), update("b", "1")}
	tried := map[string]int{}
	for s := range 400 {
		now := start.Add(time.Duration(s) * time.Second)
		p := action.Plan{Now: now, Refusals: m.For(web, refusals.Observation{Now: now, Generation: 1})}
		p.Add(action.Step{Actions: pods[:1+s/200]}) // the second one is wanted later
		p = action.Admit(p)
		for _, step := range p.Steps {
			for i := range step.Actions {
				m.RecordFailure(web, 1, &step.Actions[i], refusals.Failure{Late: true}, now)
				tried[step.Actions[i].Object.GetName()]++
			}
		}
	}
	assert.Positive(t, tried["b"], "%v", tried)
}

// Where an object takes a write for one purpose, it is asked for the others soon.
func TestSuccessForOnePurposeFreesTheOthers(t *testing.T) {
	var m refusals.Tracker
	reasons := []string{"Update", "Refresh", "Grace"}
	now := start
	of := func(reason string) *action.Action {
		a := update("a", "1")
		a.Reason = reason
		return &a
	}
	for range 4 {
		for _, reason := range reasons {
			m.RecordFailure(web, 1, of(reason), refusals.Failure{}, now)
		}
		now = now.Add(time.Minute)
	}
	now = now.Add(-time.Minute)
	held := func(after time.Duration) bool {
		p := action.Plan{Now: now.Add(after), Refusals: m.For(web, refusals.Observation{Now: now.Add(after), Generation: 1})}
		return !p.MayTry(of("Refresh"), nil)
	}
	require.True(t, held(10*time.Second))
	m.RecordSuccess(web, of("Update"))
	assert.False(t, held(10*time.Second))
}

// What was refused to an update is no longer wanted once another one has begun. One that changes labels alone says nothing
// of what the server makes of the next spec.
func TestTheNextUpdateForgetsWhatWasRefusedToTheOneBefore(t *testing.T) {
	spec := action.Patch{Body: map[string]any{"spec": map[string]any{}}}
	for name, tt := range map[string]struct {
		revision   string
		now, later []action.Patch
		stillKnown bool
	}{
		"another spec":                 {revision: "new", now: []action.Patch{spec}},
		"another spec, out of service": {revision: "new", now: []action.Patch{{Subresource: "status"}}, later: []action.Patch{spec}},
		"labels alone":                 {revision: "new", now: []action.Patch{{Body: map[string]any{"metadata": map[string]any{}}}}, stillKnown: true},
		"the same update":              {revision: "old", now: []action.Patch{spec}, stillKnown: true},
	} {
		var m refusals.Tracker
		next := update("a", "1")
		next.Reason, next.Revision = "Refresh", "old"
		m.RecordFailure(web, 1, &next, refusals.Failure{Late: true}, start)
		other := update("b", "1")
		other.Reason, other.Revision = "Refresh", "old"
		m.RecordFailure(web, 1, &other, refusals.Failure{Late: true}, start)
		begins := update("a", "1")
		begins.Revision, begins.Patches, begins.LaterPatches = tt.revision, tt.now, tt.later
		m.RecordSuccess(web, &begins)
		p := action.Plan{Now: start, Refusals: m.For(web, refusals.Observation{Now: start, Generation: 1})}
		assert.Equal(t, tt.stillKnown, p.WasRefused(&next), name)
		assert.Equal(t, tt.stillKnown, p.WasRefusedFor(&next), name)
		onward := next
		onward.Revision = "new"
		assert.False(t, p.WasRefusedFor(&onward), name)
		pauses := p.Refusals[next.Purpose()].Targets[next.Target()].Until.After(start)
		assert.Equal(t, tt.revision == "old", pauses, "%s: only a refusal of the same update keeps its pause", name)
		assert.True(t, p.WasRefused(&other))
	}
}

// Pods whose refused updates are forgotten leave their turns to the others.
func TestOthersHaveTheTurnsOfUpdatesThatAreForgotten(t *testing.T) {
	var m refusals.Tracker
	pods := []action.Action{update("a", "1"), update("b", "1"), update("c", "1"), update("d", "1")}
	now := start
	for range 8 {
		for i := range pods {
			pods[i].Revision = "new"
			m.RecordFailure(web, 1, &pods[i], refusals.Failure{}, now)
		}
		now = now.Add(4 * refusals.MaxPause)
	}
	now = now.Add(-4 * refusals.MaxPause)
	waits := func() time.Duration {
		known := m.For(web, refusals.Observation{Now: now, Generation: 1})[pods[3].Purpose()]
		return known.Targets[pods[3].Target()].Until.Sub(now)
	}
	require.Equal(t, 4*refusals.MaxPause, waits(), "four take turns")
	for i := range pods[:3] {
		goesOn := pods[i]
		goesOn.Reason = "Refresh"
		goesOn.Revision = "old"
		goesOn.Patches = []action.Patch{{Body: map[string]any{"spec": map[string]any{}}}}
		m.RecordSuccess(web, &goesOn)
	}
	assert.Equal(t, refusals.MaxPause, waits())
}

func TestPodThatBecomesAvailableIsWorthATry(t *testing.T) {
	var m refusals.Tracker
	early, late := update("a", "1"), update("b", "1")
	late.Reason = "Refresh"
	m.RecordFailure(web, 1, &early, refusals.Failure{RetryAfter: time.Minute}, start)
	m.RecordFailure(web, 1, &late, refusals.Failure{RetryAfter: time.Minute, Late: true}, start)
	for available, want := range []bool{true, false} {
		p := action.Plan{Now: start, Refusals: m.For(web, refusals.Observation{Now: start, Generation: 1, Available: func() int { return available }})}
		assert.Equal(t, want, !p.MayTry(&early, nil))
		assert.False(t, p.MayTry(&late, nil))
	}
}

func TestChangedObjectExcusesConflicts(t *testing.T) {
	var m refusals.Tracker
	a := update("a", "1")
	m.RecordFailure(web, 1, &a, refusals.Failure{Conflict: true}, start)
	p := action.Plan{Now: start, Refusals: m.For(web, refusals.Observation{Now: start, Generation: 1})}
	assert.False(t, p.MayTry(&a, nil))
	newer := update("a", "2")
	assert.True(t, p.MayTry(&newer, nil))
	p.Add(action.Step{Actions: []action.Action{a}})
	p = action.Admit(p)
	assert.Empty(t, p.Steps)
	assert.Empty(t, p.Deferred, "a conflict at first is no refusal")
	m.Forget(web.NamespacedName)
	assert.Empty(t, m.For(web, refusals.Observation{Now: start}))
}

// Conflicts with another writer are no refusal, however many there are: each newer version is tried at once. Where the
// cache shows no newer one the pauses grow, so that it is not asked again and again.
func TestOtherWritersAreNoRefusal(t *testing.T) {
	overtaken := refusals.Failure{Conflict: true, Overtaken: true, Message: "modified"}
	var m refusals.Tracker
	for version := range 20 {
		a := update("a", strconv.Itoa(version))
		p := action.Plan{Now: start, Refusals: m.For(web, refusals.Observation{Now: start, Generation: 1})}
		require.True(t, p.MayTry(&a, nil), "version %d", version)
		pause, told := m.RecordFailure(web, 1, &a, overtaken, start)
		assert.Equal(t, time.Second, pause)
		assert.Empty(t, told)
	}
	assert.Equal(t, []int{0, 1, 3, 7, 15, 31, 61, 91}, attempts(100, overtaken, update("a", "1")))
}

// Whichever of several refused pods has its place in a pass, users are told the same.
func TestOfRefusedPodsTheSameIsSaid(t *testing.T) {
	var m refusals.Tracker
	pods := []action.Action{update("b", "1"), update("a", "1"), update("c", "1")}
	fail := func(a *action.Action, now time.Time) action.Told {
		_, told := m.RecordFailure(web, 1, a, refusals.Failure{Late: true, Message: "no to " + a.Object.GetName()}, now)
		return told
	}
	said := map[string]bool{fail(&pods[0], start).Message: true}
	for s := range 600 {
		now := start.Add(time.Duration(s) * time.Second)
		p := action.Plan{Now: now, Refusals: m.For(web, refusals.Observation{Now: now, Generation: 1})}
		p.Add(action.Step{Actions: slices.Concat(pods[s%3:], pods[:s%3])})
		p = action.Admit(p)
		var done action.Failures
		for _, step := range p.Steps {
			for i := range step.Actions {
				done.Add(action.UpdateInPlace, fail(&step.Actions[i], now))
			}
		}
		said[done.WithDeferred(p.Deferred).UpdateError] = true
	}
	assert.Equal(t, map[string]bool{"no to b": true}, said)
}

// Of several refused actions one is to be tried soon, also when they were all tried at the same time: within a minute
// after the refusals have ended, all go on.
func TestOneOfSeveralHasItsTurnSoon(t *testing.T) {
	var m refusals.Tracker
	pods := []action.Action{update("a", "1"), update("b", "1"), update("c", "1")}
	now := start
	for range 8 {
		now = now.Add(2 * time.Minute)
		for i := range pods {
			m.RecordFailure(web, 1, &pods[i], refusals.Failure{Late: true, Message: "no"}, now)
		}
	}
	next := now.Add(time.Hour)
	for _, r := range m.For(web, refusals.Observation{Now: now, Generation: 1})[pods[0].Purpose()].Targets {
		if r.Until.Before(next) {
			next = r.Until
		}
	}
	assert.Equal(t, refusals.MaxPause, next.Sub(now))
}

// Since when a node has been too small for a pod is remembered until another answer comes from somebody who has looked
// at the node, or another revision is asked for.
func TestNodesThatAreTooSmall(t *testing.T) {
	a, b := update("a", "1"), update("a", "1")
	a.Revision, b.Revision = "old", "new"
	tooSmall := refusals.Failure{Message: "too much", Late: true, NodeTooSmall: true}
	for name, tt := range map[string]struct {
		then   refusals.Failure
		update action.Action
		want   action.NodeTooSmall
	}{
		"again":                {tooSmall, a, action.NodeTooSmall{Since: start, Revision: "old"}},
		"a conflict":           {refusals.Failure{Conflict: true}, a, action.NodeTooSmall{Since: start, Revision: "old"}},
		"no answer":            {refusals.Failure{MayHaveSucceeded: true}, a, action.NodeTooSmall{Since: start, Revision: "old"}},
		"another refusal":      {refusals.Failure{}, a, action.NodeTooSmall{}},
		"for another revision": {tooSmall, b, action.NodeTooSmall{Since: start.Add(time.Minute), Revision: "new"}},
	} {
		t.Run(name, func(t *testing.T) {
			var m refusals.Tracker
			m.RecordFailure(web, 1, &a, tooSmall, start)
			m.RecordFailure(web, 1, &tt.update, tt.then, start.Add(time.Minute))
			known := m.For(web, refusals.Observation{Now: start.Add(time.Minute), Generation: 2})
			assert.Equal(t, tt.want, known[a.Purpose()].Targets[a.Target()].NodeTooSmall)
			assert.Equal(t, !tt.want.Since.IsZero() && known[a.Purpose()].Message != "", known[a.Purpose()].Told.NodeTooSmall)
			pod := a.Object.(*corev1.Pod)
			assert.Equal(t, tt.want.Since, known.NodeTooSmallSince(pod, tt.want.Revision))
			assert.Zero(t, known.NodeTooSmallSince(pod, "other"))
			m.RecordSuccess(web, &a)
			assert.Zero(t, m.For(web, refusals.Observation{Now: start, Generation: 2}).NodeTooSmallSince(pod, tt.want.Revision))
		})
	}
}

// What was refused to a workload says nothing of one that is made anew under its name.
func TestAWorkloadThatIsMadeAnewIsRefusedNothing(t *testing.T) {
	var m refusals.Tracker
	create := action.Action{Verb: action.Create, Reason: "ScaleOut", Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0"}}}
	for range 6 {
		m.RecordFailure(web, 1, &create, refusals.Failure{Message: "no"}, start)
	}
	anew := memory.Key{NamespacedName: web.NamespacedName, UID: "anew"}
	require.NotEmpty(t, m.For(web, refusals.Observation{Now: start, Generation: 1}))
	assert.Empty(t, m.For(anew, refusals.Observation{Now: start, Generation: 1}))
	pause, _ := m.RecordFailure(anew, 1, &create, refusals.Failure{Message: "no"}, start)
	assert.Equal(t, time.Second, pause, "its pauses begin anew")
}
