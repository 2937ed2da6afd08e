package action

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Purpose is the common part of actions that are likely to be refused together.
type Purpose struct {
	Verb         Verb
	Kind, Reason string
}

// Purpose is the purpose of the action.
func (a *Action) Purpose() Purpose { return Purpose{a.Verb, kindOf(a.Object), a.Reason} }

// Target identifies the action among others of its purpose: by the object's UID, or its name before it has one. All
// made-up names count as the same name.
func (a *Action) Target() string {
	switch uid := a.Object.GetUID(); {
	case a.GeneratedName:
		return ""
	case uid != "":
		return string(uid)
	}
	return a.Object.GetName()
}

// WithoutGeneratedName is a text about the action in which a made-up name is cut down to its common part with others.
func (a *Action) WithoutGeneratedName(text string) string {
	if !a.GeneratedName {
		return text
	}
	return strings.ReplaceAll(text, a.Object.GetName(), a.Object.GetGenerateName())
}

// Refusals are the actions of a workload that the server has refused and has not taken since.
type Refusals map[Purpose]RefusedPurpose

// RefusedPurpose is the state of one refused purpose.
type RefusedPurpose struct {
	// Probing is true if nothing of the purpose was taken since the last refusal: one action is tried at a
	// time, and none before Until.
	Probing bool
	// Until is the moment before which nothing of the purpose is tried; zero for none.
	Until time.Time
	// The server's answer to one of the actions: to the same one for as long as it is refused, so that a status does not
	// change with each try.
	Told
	// OnlyByBudget is true if nothing but disruption budgets has refused any of the actions, before a pod had left service:
	// they refuse the first write, so that no dry run is needed.
	OnlyByBudget bool
	// StillWanted is true if the turn of one of the actions is yet to come, or was a short time ago: a plan has wanted it
	// lately.
	StillWanted bool
	// Targets are the actions that were refused, by Action.Target.
	Targets map[string]Refusal
}

// Refusal is the state of one refused action.
type Refusal struct {
	// Until is the moment before which it is not tried again.
	Until time.Time
	// Transient is true if there were only conflicts so far. They are not reported: the snapshot may have been outdated.
	Transient bool
	// Version is then the resourceVersion that the plan was made from; another one is tried at once. Empty means any.
	Version string
	// Revision is the Action's, as it was refused last.
	Revision string
	// MayHaveSucceeded is true if its first write may have been done: that write is sent as a dry run, too.
	MayHaveSucceeded bool
	// ByBudget is true if a disruption budget has refused last, before a pod had left service.
	ByBudget bool
	// NodeTooSmall is the state of a pod that asks for more than its node has.
	NodeTooSmall NodeTooSmall
}

// NodeTooSmall records since when a pod has been refused because it asks for more than its node has. It is zero where
// the last answer was another one.
type NodeTooSmall struct {
	// Since is the moment of the first of these refusals in a row.
	Since time.Time
	// Revision is the Action's: another revision may ask for less and fit.
	Revision string
}

// DeferredAction is an action that was left out of a plan because it, or another one of its purpose, was refused.
type DeferredAction struct {
	// Verb is the action's.
	Verb Verb
	// The server's answer.
	Told
}

// NodeTooSmallSince is since when the server has refused to bring the pod on towards the revision with the short hash,
// for whatever purpose, because its node is too small; zero where it has not.
func (r Refusals) NodeTooSmallSince(pod *corev1.Pod, revision string) time.Time {
	var since time.Time
	for purpose, known := range r {
		t := known.Targets[string(pod.UID)].NodeTooSmall
		if purpose.Verb == UpdateInPlace && t.Revision == revision && t.Since.After(since) {
			since = t.Since
		}
	}
	return since
}

// ByBudget reports whether a disruption budget has refused to have the pod taken out of service, for whatever purpose.
func (r Refusals) ByBudget(pod *corev1.Pod) bool {
	for _, known := range r {
		if known.Targets[string(pod.UID)].ByBudget {
			return true
		}
	}
	return false
}

// Report returns the plan that writes the next status of an object. It is empty while that write waits because of an
// earlier refusal.
func Report(o Object, known Refusals, now time.Time) Plan {
	p := Plan{Refusals: known, Now: now}
	p.Add(Step{Name: "status", Actions: []Action{{Verb: PatchStatus, Object: o, Reason: "Status"}}})
	return Admit(p)
}

// WasRefused reports whether this very action was refused before, at any version of its object.
func (p *Plan) WasRefused(a *Action) bool {
	_, refused := p.Refusals[a.Purpose()].Targets[a.Target()]
	return refused
}

// WasRefusedFor reports whether this very action was refused before for its revision: one for another revision may do
// something else.
func (p *Plan) WasRefusedFor(a *Action) bool {
	r, refused := p.Refusals[a.Purpose()].Targets[a.Target()]
	return refused && r.Revision == a.Revision
}

// Transient reports whether the action has met nothing but conflicts so far: it keeps its place.
func (p *Plan) Transient(a *Action) bool {
	return p.Refusals[a.Purpose()].Targets[a.Target()].Transient
}

// Pause is how long the action waits because it, or another one of its purpose, was refused; 0 if it need not wait.
func (p *Plan) Pause(a *Action) time.Duration {
	left, _ := p.pause(a)
	return max(left, 0)
}

// MayTry reports whether the action may be tried in this pass: no pause after a refusal is left, and no other action of
// its purpose is the probe. Building is the step that it is for, and that is to be added to the plan; nil for none. The
// question changes nothing.
func (p *Plan) MayTry(a *Action, building *Step) bool {
	if left, _ := p.pause(a); left > 0 {
		return false
	}
	purpose := a.Purpose()
	if !p.Refusals[purpose].Probing {
		return true
	}
	probe := p.probe(purpose, building)
	return probe == nil || probe.Target() == a.Target()
}

// YieldsPlace reports whether the action is refused, so that others may have its place in this pass. The question changes
// nothing: a rule holds the action then.
func (p *Plan) YieldsPlace(a *Action, building *Step) bool {
	return !p.MayTry(a, building) && !p.Transient(a)
}

// Try puts the action into a step that is to be added later, and reports whether it did. An action that yields its place
// is held instead.
func (p *Plan) Try(building *Step, a Action) bool {
	if p.YieldsPlace(&a, building) {
		p.Hold(building, a)
		return false
	}
	p.Put(building, a)
	return true
}

// probe is the first action of a refused purpose that the plan, or the step that is to be added to it, tries; nil for
// none.
func (p *Plan) probe(purpose Purpose, building *Step) *Action {
	for i := range p.Steps {
		if a := p.probeIn(&p.Steps[i], purpose); a != nil {
			return a
		}
	}
	if building == nil {
		return nil
	}
	return p.probeIn(building, purpose)
}

func (p *Plan) probeIn(s *Step, purpose Purpose) *Action {
	for i := range s.Actions {
		a := &s.Actions[i]
		if a.Held || a.Verb != purpose.Verb || a.Reason != purpose.Reason || kindOf(a.Object) != purpose.Kind {
			continue
		}
		if left, _ := p.pause(a); left <= 0 {
			return a
		}
	}
	return nil
}

// pause is the time before the action may be tried, and whether users are to know why it is not done.
func (p *Plan) pause(a *Action) (left time.Duration, explained bool) {
	known, ok := p.Refusals[a.Purpose()]
	if !ok {
		return 0, false
	}
	r, refused := known.Targets[a.Target()]
	refused = refused && (r.Version == "" || r.Version == a.Object.GetResourceVersion())
	until := known.Until
	if refused && r.Until.After(until) {
		until = r.Until
	}
	left = until.Sub(p.Now)
	return left, left > 0 || known.Probing || refused
}

// DeferUnreached adds refused actions to Deferred that the status shows already and that a plan that ends early has not
// reached, so that the status is the same in each pass. A refused action that the status does not show may be no longer
// wanted: a plan that came so far would know.
func (p *Plan) DeferUnreached(told func(message string) bool) {
	for purpose, known := range p.Refusals {
		h := DeferredAction{purpose.Verb, known.Told}
		if known.StillWanted && known.Message != "" && told(known.Message) && !slices.Contains(p.Deferred, h) {
			p.Deferred = append(p.Deferred, h)
		}
	}
}
