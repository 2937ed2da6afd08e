package certs

import (
	"time"
)

const (
	// propagationTime is how long API servers get to notice a new bundle before a certificate depends on it. They
	// watch the configurations; minutes are generous.
	propagationTime = 10 * time.Minute
	// overlap is how long a CA stays trusted after the last certificate was signed by its successor, for
	// replicas that were cut off from the API server when the Secret changed.
	overlap = day
)

// Snapshot is the input of a plan.
type Snapshot struct {
	Now time.Time
	// Stored is the content of the Secret; nil when the Secret is missing.
	Stored *Content
	// Incomplete is true if the Secret lacks a key that follows from Stored, such as ca.crt.
	Incomplete bool
	// Remembered is the content that this replica serves; nil after a start.
	Remembered *Content
	// Published is true if every webhook configuration and CRD has the bundle of Stored.
	Published bool
}

// Plan is the decision of one pass about the certificates.
type Plan struct {
	// Content is the content to publish, and then to serve.
	Content Content
	// Write means that Content has to be stored in the Secret first.
	Write bool
	// Reason is why the Secret is written, for the log.
	Reason string
}

// step is one possible change of valid content; a step without reason does not apply.
type step struct {
	reason  string
	applies func(contentState) bool
	change  func(Authority, contentState) (Content, error)
}

// steps returns the possible changes in order of evaluation. The first that applies is taken: one change at a time, so that
// everybody is at most one step behind.
func steps() []step {
	return []step{
		{"the serving certificate is invalid", contentState.cannotServe, Authority.renewServing}, // moved, edited, expired
		{"the CA is due for replacement", contentState.needsNextCA, Authority.prepareNextCA},     // trusted first
		{"the next CA is trusted everywhere", contentState.canSwitch, Authority.switchCA},        // then used
		{"the previous CA is unused", contentState.canDrop, Authority.dropPreviousCA},            // then alone
		{"the serving certificate is due for renewal", contentState.servingDue, Authority.renewServing},
	}
}

// Plan decides the content of the Secret. It is a pure function except for the randomness of new keys.
func (a Authority) Plan(snapshot Snapshot) (Plan, error) {
	content, reason, err := a.base(snapshot)
	if err != nil {
		return Plan{}, err
	}
	if reason != "" {
		return Plan{Content: content, Write: true, Reason: reason}, nil
	}
	state := a.evaluate(content, snapshot)
	for _, step := range steps() {
		if !step.applies(state) {
			continue
		}
		changed, err := step.change(a, state)
		return Plan{Content: changed, Write: true, Reason: step.reason}, err
	}
	if snapshot.Incomplete {
		return Plan{
			Content: content,
			Write:   true,
			Reason:  "the Secret is incomplete",
		}, nil
	}
	return Plan{Content: content}, nil
}

// base returns the content to start from: the stored content if it is usable; otherwise, with a reason, the content that
// this replica remembers with a new CA in preparation, so that a lost Secret interrupts nothing; otherwise everything
// new.
func (a Authority) base(snapshot Snapshot) (Content, string, error) {
	reason := "the Secret is missing"
	if snapshot.Stored != nil {
		if a.usable(*snapshot.Stored, snapshot.Now) {
			return *snapshot.Stored, "", nil
		}
		reason = "the content of the Secret is invalid"
	}
	if snapshot.Remembered != nil && a.canServe(*snapshot.Remembered, snapshot.Now) == nil {
		content := *snapshot.Remembered
		var err error
		if content.Next.empty() {
			content.Next, err = a.newCA(snapshot.Now)
		}
		return content, reason, err
	}

	ca, err := a.newCA(snapshot.Now)
	if err != nil {
		return Content{}, "", err
	}
	serving, err := a.newServing(ca, snapshot.Now)
	return Content{CA: ca, Serving: serving}, reason, err
}

func (a Authority) usable(content Content, now time.Time) bool {
	return a.canSign(content.CA, now) == nil || a.canServe(content, now) == nil
}

// contentState is valid content with the values that the conditions of steps need.
type contentState struct {
	content   Content
	now       time.Time
	published bool

	serves, servesAlone      bool // with the whole bundle; without the previous CA
	signs, nextSigns         bool
	servingRenewal, servedBy time.Time // when to renew; since when the serving certificate exists
	caRenewal, nextSince     time.Time
}

func (a Authority) evaluate(content Content, snapshot Snapshot) contentState {
	alone := content
	alone.Previous = nil
	state := contentState{
		content:     content,
		now:         snapshot.Now,
		published:   snapshot.Published,
		serves:      a.canServe(content, snapshot.Now) == nil,
		servesAlone: a.canServe(alone, snapshot.Now) == nil,
		signs:       a.canSign(content.CA, snapshot.Now) == nil,
		nextSigns:   !content.Next.empty() && a.canSign(content.Next, snapshot.Now) == nil,
	}
	if serving, err := parse(content.Serving.Certificate); err == nil {
		state.servingRenewal = renewal(serving, a.RenewBefore)
		state.servedBy = serving.NotBefore.Add(backdate)
	}
	if ca, err := parse(content.CA.Certificate); err == nil {
		state.caRenewal = renewal(ca, 0)
	}
	if next, err := parse(content.Next.Certificate); err == nil {
		state.nextSince = next.NotBefore.Add(backdate)
	}
	return state
}

func (s contentState) cannotServe() bool { return !s.serves && s.signs }

func (s contentState) needsNextCA() bool {
	if !s.content.Next.empty() {
		return !s.nextSigns
	}
	return !s.signs || !s.now.Before(s.caRenewal)
}

func (s contentState) canSwitch() bool {
	return s.nextSigns && s.published && !s.now.Before(s.nextSince.Add(propagationTime))
}

func (s contentState) canDrop() bool {
	return len(s.content.Previous) > 0 && s.servesAlone && !s.now.Before(s.servedBy.Add(overlap))
}

// servingDue reports whether the serving certificate is to be renewed. A CA that cannot sign is handled by the steps
// before.
func (s contentState) servingDue() bool {
	return s.signs && !s.now.Before(s.servingRenewal)
}

func (a Authority) renewServing(state contentState) (Content, error) {
	var err error
	content := state.content
	content.Serving, err = a.newServing(content.CA, state.now)
	return content, err
}

func (a Authority) prepareNextCA(state contentState) (Content, error) {
	var err error
	content := state.content
	content.Next, err = a.newCA(state.now)
	return content, err
}

func (a Authority) switchCA(state contentState) (Content, error) {
	serving, err := a.newServing(state.content.Next, state.now)
	return Content{
		CA:       state.content.Next,
		Previous: state.content.CA.Certificate,
		Serving:  serving,
	}, err
}

func (a Authority) dropPreviousCA(state contentState) (Content, error) {
	content := state.content
	content.Previous = nil
	return content, nil
}
