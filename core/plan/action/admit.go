package action

import (
	"slices"
	"time"
)

// probeCheck is when a plan is made again whose actions wait for the probe of their purpose.
const probeCheck = time.Second

// Admit returns the plan that is executed of all that the rules want. It stands between them:
//
//   - Actions that were refused wait for the end of their pause, and all of a refused purpose for its probe, which is the
//     first of them that need not wait. They are left out. The plan asks for a pass when the first of them may be tried.
//   - If an action waits that is not independent, later steps wait, too: they may build on it. Nothing builds on a deleted
//     object, and steps that run first build on nothing.
//   - An action is sent as a dry run first if its purpose was refused, or if such a write to its object was refused for
//     another purpose.
//   - A claim is deleted under guard Unmounted, also if its rule has not said so.
//   - Users get the reason of whatever waits, or has waited until now: a status must not change with each try.
//
// An admitted plan stays as it is.
func Admit(p Plan) Plan {
	if p.admitted {
		return p
	}
	p.admitted = true
	w := walk{plan: &p}
	var first, then []Step
	for _, s := range p.Steps {
		switch s.Actions = guarded(w.admitted(&s)); {
		case len(s.Actions) == 0:
		case s.First:
			first = slices.Insert(first, 0, s)
		default:
			then = append(then, s)
		}
	}
	p.Steps = slices.Concat(first, then)
	p.RequeueWithin(w.again)
	p.explain(w.refused)
	return p
}

// Empty reports whether the plan writes nothing: it wants nothing, or all that it wants has to wait.
func (p *Plan) Empty() bool {
	if p.admitted {
		return len(p.Steps) == 0
	}
	w := walk{plan: p}
	return !slices.ContainsFunc(p.Steps, func(s Step) bool { return w.tries(&s) > 0 })
}

// WantsSince reports whether the plan wants anything beyond so many steps: something that may be tried, or that waits only
// because it may build on what was refused.
func (p *Plan) WantsSince(steps int) bool {
	w := walk{plan: p}
	for i := range p.Steps {
		cut := w.cuts(&p.Steps[i])
		if tried := w.tries(&p.Steps[i]); i >= steps && (tried > 0 || cut) {
			return true
		}
	}
	return false
}

// Tries counts the actions of the steps with the name that may be tried.
func (p *Plan) Tries(step string) int {
	n := 0
	w := walk{plan: p}
	for i := range p.Steps {
		tried := w.tries(&p.Steps[i])
		if p.Steps[i].Name == step {
			n += tried
		}
	}
	return n
}

// walk goes through the steps of a plan in the order in which they were added, and finds out what of them is tried. It
// changes nothing of the plan.
type walk struct {
	plan    *Plan
	probes  map[Purpose]string // targets of the tried actions of a purpose that is refused as a whole
	blocked bool               // nothing can follow the actions that wait
	again   time.Duration      // when to plan again
	refused []reason
}

// reason is an action whose refusal users are to know of, and how many waits of the plan come before it.
type reason struct {
	action      *Action
	waitsBefore int
}

// admitted returns the actions of a step that are tried.
func (w *walk) admitted(s *Step) []Action {
	if len(w.plan.Refusals) == 0 && len(w.plan.RefusedVerbs) == 0 {
		return s.Actions
	}
	kept := make([]Action, 0, len(s.Actions))
	w.step(s, func(a *Action) { kept = append(kept, w.plan.rehearsed(*a)) })
	return kept
}

// guarded returns the actions with a guard for each deletion of a claim.
func guarded(actions []Action) []Action {
	unguarded := func(a Action) bool { return a.Verb == Delete && a.Guard == "" && kindOf(a.Object) == kindOfClaim }
	if !slices.ContainsFunc(actions, unguarded) {
		return actions
	}
	all := slices.Clone(actions)
	for i := range all {
		if unguarded(all[i]) {
			all[i].Guard = Unmounted
		}
	}
	return all
}

// tries counts the actions of a step that are tried.
func (w *walk) tries(s *Step) int {
	if len(w.plan.Refusals) == 0 {
		return len(s.Actions)
	}
	n := 0
	w.step(s, func(*Action) { n++ })
	return n
}

// cuts reports whether the step is left out because it may build on what waits.
func (w *walk) cuts(s *Step) bool {
	return w.blocked && !s.First && slices.ContainsFunc(s.Actions, func(a Action) bool { return !a.Held })
}

// step calls try for each action of the step that is tried.
func (w *walk) step(s *Step, try func(*Action)) {
	cut, blocks := w.blocked && !s.First, false
	for i := range s.Actions {
		a := &s.Actions[i]
		left, explained := w.plan.pause(a)
		if explained { // also while it is tried: a status must not change with each try
			w.explain(s, a)
		}
		switch {
		case cut && !a.Held:
		case left > 0:
			w.waits(left)
			blocks = blocks || othersBuildOn(a)
		case a.Held:
			if w.hasOtherProbe(a) {
				w.waits(probeCheck)
			}
		case w.hasOtherProbe(a):
			w.waits(probeCheck)
			blocks = blocks || othersBuildOn(a)
		default:
			w.becomesProbe(a)
			try(a)
		}
	}
	w.blocked = w.blocked || blocks && !s.First
}

// waits notes how long an action waits.
func (w *walk) waits(left time.Duration) {
	if w.again == 0 || left < w.again {
		w.again = left
	}
}

// hasOtherProbe reports whether another action of the same refused purpose is the one that is tried.
func (w *walk) hasOtherProbe(a *Action) bool {
	probe, taken := w.probes[a.Purpose()]
	return taken && probe != a.Target()
}

// becomesProbe makes an action that is tried the probe of its purpose, if that is refused as a whole.
func (w *walk) becomesProbe(a *Action) {
	if purpose := a.Purpose(); w.plan.Refusals[purpose].Probing {
		if w.probes == nil {
			w.probes = map[Purpose]string{}
		}
		w.probes[purpose] = a.Target()
	}
}

// othersBuildOn reports whether later steps may build on an action that waits.
func othersBuildOn(a *Action) bool {
	return !a.Held && !a.Independent && a.Verb != Delete
}

func (w *walk) explain(s *Step, a *Action) {
	at := s.waitsBefore
	if a.waitsBefore > 0 {
		at = a.waitsBefore - 1
	}
	w.refused = append(w.refused, reason{a, at})
}

// rehearsed returns an action that is tried, as a dry run first where it may be refused too late.
func (p *Plan) rehearsed(a Action) Action {
	known, refused := p.Refusals[a.Purpose()]
	a.RefusedBefore, a.DryRunAll = p.WasRefused(&a), p.doubtful(&a)
	a.DryRun = a.DryRun || refused && !known.OnlyByBudget || a.DryRunAll || p.refusedOtherwise(&a) || slices.Contains(p.RefusedVerbs, a.Verb)
	return a
}

// refusedOtherwise reports whether such a write to the object was refused for another purpose: one that takes a pod out of
// service would be, too, once the pod has left.
func (p *Plan) refusedOtherwise(a *Action) bool {
	mine := a.Purpose()
	for other, known := range p.Refusals {
		r, refused := known.Targets[a.Target()]
		if refused && !r.Transient && !r.ByBudget && other.Verb == mine.Verb && other.Kind == mine.Kind {
			return true
		}
	}
	return false
}

// doubtful reports whether the first write of the action may be done without an answer: the last answer for its
// purpose is missing, or other writes are to follow and one to the same object was not answered, for whatever purpose.
func (p *Plan) doubtful(a *Action) bool {
	purpose, target := a.Purpose(), a.Target()
	for other, known := range p.Refusals {
		if (other == purpose || len(a.Patches)+len(a.LaterPatches) > 1) && known.Targets[target].MayHaveSucceeded {
			return true
		}
	}
	return false
}

// explain puts the reasons why actions wait, or have waited until now, among the waits. All actions of a purpose get the
// same reason.
func (p *Plan) explain(all []reason) {
	if len(all) == 0 {
		return
	}
	slices.SortStableFunc(all, func(a, b reason) int { return a.waitsBefore - b.waitsBefore })
	waits := make([]Wait, 0, len(p.Waits)+len(all))
	known := map[Wait]bool{}
	for at := 0; at <= len(p.Waits); at++ {
		for ; len(all) > 0 && all[0].waitsBefore == at; all = all[1:] {
			a := all[0].action
			w, told := p.reasonOf(a)
			if told == nil && w.Reason == "" || known[w] {
				continue
			}
			known[w] = true
			waits = append(waits, w)
			if told != nil {
				p.Deferred = append(p.Deferred, DeferredAction{a.Verb, *told})
			}
		}
		if at < len(p.Waits) {
			known[p.Waits[at]] = true
			waits = append(waits, p.Waits[at])
		}
	}
	p.Waits = waits
}

// reasonOf is the reason why an action waits, and the server's answer if users are to know of it. It is empty where there
// is nothing to report.
func (p *Plan) reasonOf(a *Action) (w Wait, told *Told) {
	known := p.Refusals[a.Purpose()]
	w = Wait{
		Reason:  WaitRefused,
		Object:  a.Object.GetName(),
		Message: known.Message,
	}
	if a.GeneratedName {
		w.Object = ""
	}
	switch {
	case known.Message != "" && known.ByBudget:
		w.Reason = WaitBudget
	case known.Message != "" && known.Told.NodeTooSmall:
		w.Reason = WaitNodeTooSmall
	case known.Message != "":
	case !known.Probing && !known.Targets[a.Target()].Transient: // nothing to report
		return Wait{}, nil
	case a.Verb == Create:
		w.Reason = WaitConflict
		w.Message = "the server reports a conflict"
	default:
		w.Reason = WaitConflict
		w.Message = "another client has changed it"
	}
	if known.Message == "" {
		return w, nil
	}
	return w, &known.Told
}
