package refusals

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/memory"
)

const (
	// firstPause is the first pause before a refused write is repeated as it is.
	firstPause = time.Second
	// firstDryRunPause is the first pause before a dry run of a write that was refused after other writes were done.
	firstDryRunPause = 10 * time.Second
	// MaxPause is the longest pause of all that is refused for one purpose: one of it is tried twice a minute.
	// Where several are refused they take turns, and so do the purposes for which one object is to be written.
	MaxPause = 30 * time.Second
	// retryLead is by how much actions that were never tried come before the one that was refused twice in a row.
	retryLead = time.Second
	// relief is the time that a budget has to count one more pod that is available. Who asks at once is refused, and waits for
	// the next pause.
	relief = 2 * time.Second
	// toleratedConflicts is how many conflicts in a row are not reported: the snapshot may have been outdated.
	toleratedConflicts = 3
	// forgetAfter is how long after its time a refused write is remembered that no plan wants any more.
	forgetAfter = 10 * time.Minute
)

// Failure is why an action is not done.
type Failure struct {
	// Message is the server's, empty where there is nothing to report.
	Message string
	// RetryAfter is the pause that the server asks for, 0 for none.
	RetryAfter time.Duration
	// Late is true if other writes of the action were done before, or if a dry run of it was refused.
	Late bool
	// ByBudget is true if a disruption budget has refused.
	ByBudget bool
	// MayHaveSucceeded is true if the write may have been done although an error was returned.
	MayHaveSucceeded bool
	// Conflict is true if the object was not at the version that the plan was made from.
	Conflict bool
	// Overtaken is true of a conflict after which the server has shown a version of another writer. That is no refusal,
	// however often it happens, as long as each was written from another version.
	Overtaken bool
	// Isolated is true if the cause of the failure affects this action only.
	Isolated bool
	// NodeTooSmall is true if the pod asks for more than its node has.
	NodeTooSmall bool
}

// Tracker remembers refusals. The zero value remembers nothing and is ready for use, also by several
// goroutines at a time.
type Tracker struct {
	mu        sync.Mutex
	workloads memory.Objects[*workload]
}

// workload is all that is refused to one workload.
type workload struct {
	generation int64
	available  int // at the last pass, -1 before
	purposes   map[action.Purpose]*purposeState
}

// purposeState is all that is refused for one purpose.
type purposeState struct {
	streak      int       // refusals since the last success; one action is tried at a time while there are any
	last        *target   // that was refused
	pausedUntil time.Time // nothing of the purpose is tried before
	targets     map[string]*target
}

// Observation is the view of a workload in one pass.
type Observation struct {
	// Now is the time.
	Now time.Time
	// Generation is the workload's: an edit ends the present pauses.
	Generation int64
	// Available counts the workload's available pods. It is asked only where something is refused: another admission
	// webhook may wait for one more. Nil asks nothing.
	Available func() int
}

// For returns the refusals that a pass over the workload needs.
func (m *Tracker) For(key memory.Key, at Observation) action.Refusals {
	m.mu.Lock()
	defer m.mu.Unlock()
	w, ok := m.workloads.Get(key)
	if !ok {
		return nil
	}
	w.prune(at.Now)
	if len(w.purposes) == 0 {
		m.workloads.Forget(key.NamespacedName)
		return nil
	}
	w.endPauses(at)
	known := make(action.Refusals, len(w.purposes))
	for purpose, r := range w.purposes {
		known[purpose] = r.view(at.Now)
	}
	return known
}

// RecordFailure records that the action of the workload is not done. It returns the pause before it, or another one of
// its purpose, is tried again, and the report for a status: the same for all refused actions of the purpose, whichever
// was tried last, and none for a conflict at first.
func (m *Tracker) RecordFailure(key memory.Key, generation int64, a *action.Action, f Failure, now time.Time) (pause time.Duration, told action.Told) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.of(key, generation)
	r := w.purpose(a.Purpose())
	t := r.target(a)
	asked := t.byBudget
	if t.fail(a, f, now) {
		t.turn = now.Add(backoff(firstPause, t.tries))
		return backoff(firstPause, t.tries), action.Told{}
	}
	if !f.Isolated {
		if !t.byBudget || !now.Before(r.pausedUntil) { // a budget gives all that ask at once the same answer
			r.streak++
		}
		r.pausedUntil = now.Add(max(backoff(firstPause, r.streak), f.RetryAfter))
		if r.last == t && backoff(firstPause, r.streak) == MaxPause {
			r.pausedUntil = r.pausedUntil.Add(-retryLead)
		}
		r.last = t
	}
	if t.byBudget && !asked {
		t.ahead = max(0, t.tries-r.streak)
	}
	if !f.Conflict { // the server does not know the purpose of a write
		t.before += max(0, w.refusalsAt(a)+1-t.refusals(r.streak))
	}
	once := t.pause(f.Late, r.streak)
	spread := once * time.Duration(r.wanted(t, now))
	if !r.hasTurn(now, now.Add(MaxPause), t) { // the turns need not be spread evenly
		spread = min(spread, MaxPause)
	}
	pause = max(spread, once*time.Duration(w.refusedAt(a, now)), f.RetryAfter)
	t.turn = now.Add(pause)
	if next := r.pausedUntil.Sub(now); !f.Isolated && next < pause { // it may be the turn of another one
		pause = next
	}
	if t.transient {
		return pause, action.Told{}
	}
	told, _ = r.told(now)
	return pause, told
}

// target is the state of the action, which is new at the first refusal.
func (r *purposeState) target(a *action.Action) *target {
	t := r.targets[a.Target()]
	if t == nil {
		t = &target{relievable: a.Independent && a.Verb != action.Create}
		r.targets[a.Target()] = t
	}
	return t
}

// RecordSuccess records that the server took the action. Other refused actions of that purpose, or on that object for
// another purpose, wait as if they were alone: the refusals may have ended. A refused update in place of that pod to
// another revision is forgotten, because it is not wanted any more; the others of its purpose then wait as if they were
// alone. It is remembered, without its pause, if the update that the server took has changed no spec yet: the server may
// refuse the spec of the next update, too, which is therefore tried by a dry run first.
func (m *Tracker) RecordSuccess(key memory.Key, a *action.Action) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w, ok := m.workloads.Get(key)
	if !ok {
		return
	}
	mine := a.Purpose()
	if r := w.purposes[mine]; r != nil {
		r.streak, r.pausedUntil = 0, time.Time{}
		w.forget(mine, a.Target())
	}
	for purpose, r := range w.purposes {
		t := r.targets[a.Target()]
		switch {
		case t == nil || purpose.Verb != mine.Verb || purpose.Kind != mine.Kind:
		case t.revision == a.Revision:
			t.endTurns(r.streak)
		case a.WritesSpec():
			w.forget(purpose, a.Target())
		default:
			t.turn = t.tried
		}
	}
}

// forget drops the refusal of a target for a purpose, after a success. The others of the purpose wait as if they were alone.
func (w *workload) forget(purpose action.Purpose, target string) {
	r := w.purposes[purpose]
	delete(r.targets, target)
	for _, t := range r.targets {
		t.endTurns(r.streak)
	}
	if len(r.targets) == 0 {
		delete(w.purposes, purpose)
	}
}

// Forget drops the refusals of a workload that is gone.
func (m *Tracker) Forget(name types.NamespacedName) {
	m.workloads.Forget(name)
}

// of returns the state of a workload with refusals.
func (m *Tracker) of(key memory.Key, generation int64) *workload {
	w, ok := m.workloads.Get(key)
	if !ok {
		w = &workload{
			generation: generation,
			available:  -1,
			purposes:   map[action.Purpose]*purposeState{},
		}
		m.workloads.Set(key, w)
	}
	return w
}

func (w *workload) purpose(p action.Purpose) *purposeState {
	r := w.purposes[p]
	if r == nil {
		r = &purposeState{targets: map[string]*target{}}
		w.purposes[p] = r
	}
	return r
}

// refusedAt counts the purposes for which such writes to the object of the action are refused and may be wanted, its
// own among them.
func (w *workload) refusedAt(a *action.Action, now time.Time) int {
	n, mine := 1, a.Purpose()
	for purpose, r := range w.purposes {
		t := r.targets[a.Target()]
		if purpose != mine && purpose.Verb == mine.Verb && purpose.Kind == mine.Kind && t != nil && !r.overdue(t, now) {
			n++
		}
	}
	return n
}

// refusalsAt is how many refusals the pauses of the object of the action have grown with, for another purpose. They are
// evidence about the next such write also where the plan wants the other one no longer.
func (w *workload) refusalsAt(a *action.Action) (n int) {
	mine := a.Purpose()
	for purpose, r := range w.purposes {
		t := r.targets[a.Target()]
		if purpose != mine && purpose.Verb == mine.Verb && purpose.Kind == mine.Kind && t != nil && !t.transient {
			n = max(n, t.refusals(r.streak))
		}
	}
	return n
}

// wanted counts the actions that may be wanted: this one and others.
func (r *purposeState) wanted(this *target, now time.Time) int {
	n := 1
	for _, t := range r.targets {
		if t != this && !r.overdue(t, now) {
			n++
		}
	}
	return n
}

// overdue reports whether the action could have been tried for long and was not: it may not be wanted any more.
func (r *purposeState) overdue(t *target, now time.Time) bool {
	return now.After(t.turn.Add(MaxPause * time.Duration(len(r.targets))))
}

// hasTurn reports whether another one than the target has its turn between the moments.
func (r *purposeState) hasTurn(from, to time.Time, than *target) bool {
	for _, t := range r.targets {
		if t != than && t.turn.After(from) && !t.turn.After(to) {
			return true
		}
	}
	return false
}

// prune drops refused actions that have not been tried though they could have been for long.
func (w *workload) prune(now time.Time) {
	for purpose, r := range w.purposes {
		for key, t := range r.targets {
			if now.After(t.turn.Add(forgetAfter)) {
				delete(r.targets, key)
			}
		}
		if len(r.targets) == 0 {
			delete(w.purposes, purpose)
		}
	}
}

// endPauses ends pauses that an edit of the workload, or one more available pod, makes pointless.
func (w *workload) endPauses(at Observation) {
	edited := at.Generation != w.generation
	relieved := false
	w.generation = at.Generation
	if at.Available != nil {
		available := at.Available()
		relieved = w.available >= 0 && available > w.available
		w.available = available
	}
	if !edited && !relieved {
		return
	}
	for _, r := range w.purposes {
		for _, t := range r.targets {
			if !edited && (!t.relievable || t.late) {
				continue
			}
			due := at.Now
			if !edited && t.byBudget {
				due = due.Add(relief)
				t.turn = earlier(t.turn, due)
				r.pausedUntil = earlier(r.pausedUntil, due)
			} else {
				t.turn, r.pausedUntil = due, due
			}
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func (r *purposeState) view(now time.Time) action.RefusedPurpose {
	v := action.RefusedPurpose{
		Probing:      r.streak > 0,
		Until:        r.pausedUntil,
		OnlyByBudget: true,
		Targets:      make(map[string]action.Refusal, len(r.targets)),
	}
	for key, t := range r.targets {
		v.OnlyByBudget = v.OnlyByBudget && t.byBudget
		v.Targets[key] = action.Refusal{
			Until:            t.turn,
			Transient:        t.transient,
			Revision:         t.revision,
			MayHaveSucceeded: t.unanswered,
			Version:          t.version,
			ByBudget:         t.byBudget,
			NodeTooSmall:     t.tooSmall,
		}
	}
	v.Told, v.StillWanted = r.told(now)
	return v
}

// told is the server's answer to the action that was refused first of those that are still wanted, or of all where
// perhaps none is.
func (r *purposeState) told(now time.Time) (text action.Told, wanted bool) {
	var first *target
	for _, t := range r.targets {
		switch {
		case t.transient || t.message == "":
		case first == nil, r.overdue(first, now) && !r.overdue(t, now):
			first = t
		case r.overdue(t, now) && !r.overdue(first, now):
		case t.since.Before(first.since), t.since.Equal(first.since) && t.message < first.message:
			first = t
		}
	}
	if first == nil {
		return action.Told{}, false
	}
	return action.Told{
		Message:      first.message,
		ByBudget:     first.byBudget,
		NodeTooSmall: !first.tooSmall.Since.IsZero(),
	}, !r.overdue(first, now)
}
