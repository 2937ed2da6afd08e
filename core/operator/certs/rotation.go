package certs

import (
	"time"
)

const (
	// settle is how long API servers get to notice a new bundle before a certificate depends on it. They
	// watch the configurations; minutes are generous.
	settle = 10 * time.Minute
	// overlap is how long a CA stays trusted after the last certificate was signed by its successor, for
	// replicas that were cut off from the API server when the Secret changed.
	overlap = day
)

// Snapshot is everything that a plan depends on.
type Snapshot struct {
	Now time.Time
	// Stored is the content of the Secret; nil when there is no Secret.
	Stored *Content
	// Remembered is what this replica serves with; nil after a start.
	Remembered *Content
	// Published is true when every configuration and CRD carries the bundle of Stored.
	Published bool
}

// Plan is what shall be done about a snapshot.
type Plan struct {
	// Content is what to publish and, after that, to serve with.
	Content Content
	// Write says that Content has to be stored in the Secret first.
	Write bool
	// Reason tells why the Secret is written, for the log.
	Reason string
}

// step looks at good content and returns what it should become; a step without reason does not apply.
type step struct {
	reason  string
	applies func(judged) bool
	change  func(Authority, judged) (Content, error)
}

// steps returns the possible changes in order of evaluation. The first that applies is taken: one change at a time, so that
// everybody is at most one step behind.
func steps() []step {
	return []step{
		{"the serving certificate is not valid", judged.cannotServe, Authority.renewServing}, // moved, edited, expired
		{"the CA is due for replacement", judged.needsNextCA, Authority.prepareNextCA},       // trusted first
		{"the next CA is trusted everywhere", judged.canSwitch, Authority.switchCA},          // then used
		{"the previous CA is not used any more", judged.canDrop, Authority.dropPreviousCA},   // then alone
		{"the serving certificate is due for renewal", judged.servingDue, Authority.renewServing},
	}
}

// Plan decides what the Secret shall hold. It is a pure function, random numbers for new keys excepted.
func (a Authority) Plan(snapshot Snapshot) (Plan, error) {
	content, reason, err := a.base(snapshot)
	if err != nil {
		return Plan{}, err
	}
	if reason != "" {
		return Plan{Content: content, Write: true, Reason: reason}, nil
	}
	state := a.judge(content, snapshot)
	for _, step := range steps() {
		if !step.applies(state) {
			continue
		}
		changed, err := step.change(a, state)
		return Plan{Content: changed, Write: true, Reason: step.reason}, err
	}
	return Plan{Content: content}, nil
}

// base returns the stored content if anything can be made of it. Else, with a reason, what this replica
// remembers with a new CA in preparation, so that a lost Secret interrupts nothing; else everything new.
func (a Authority) base(snapshot Snapshot) (Content, string, error) {
	reason := "there is no Secret"
	if snapshot.Stored != nil {
		if a.usable(*snapshot.Stored, snapshot.Now) {
			return *snapshot.Stored, "", nil
		}
		reason = "the content of the Secret is not valid"
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

// judged is good content with the answers that steps need.
type judged struct {
	content   Content
	now       time.Time
	published bool

	serves, servesAlone      bool // with the whole bundle; without the previous CA
	signs, nextSigns         bool
	servingRenewal, servedBy time.Time // when to renew; since when the serving certificate exists
	caRenewal, nextSince     time.Time
}

func (a Authority) judge(content Content, snapshot Snapshot) judged {
	alone := content
	alone.Previous = nil
	state := judged{
		content: content, now: snapshot.Now, published: snapshot.Published,
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

func (j judged) cannotServe() bool { return !j.serves && j.signs }

func (j judged) needsNextCA() bool {
	if !j.content.Next.empty() {
		return !j.nextSigns
	}
	return !j.signs || !j.now.Before(j.caRenewal)
}

func (j judged) canSwitch() bool {
	return j.nextSigns && j.published && !j.now.Before(j.nextSince.Add(settle))
}

func (j judged) canDrop() bool {
	return len(j.content.Previous) > 0 && j.servesAlone && !j.now.Before(j.servedBy.Add(overlap))
}

// servingDue leaves a CA that cannot sign to the steps before.
func (j judged) servingDue() bool {
	return j.signs && !j.now.Before(j.servingRenewal)
}

func (a Authority) renewServing(state judged) (Content, error) {
	var err error
	content := state.content
	content.Serving, err = a.newServing(content.CA, state.now)
	return content, err
}

func (a Authority) prepareNextCA(state judged) (Content, error) {
	var err error
	content := state.content
	content.Next, err = a.newCA(state.now)
	return content, err
}

func (a Authority) switchCA(state judged) (Content, error) {
	serving, err := a.newServing(state.content.Next, state.now)
	return Content{CA: state.content.Next, Previous: state.content.CA.Certificate, Serving: serving}, err
}

func (a Authority) dropPreviousCA(state judged) (Content, error) {
	content := state.content
	content.Previous = nil
	return content, nil
}
