package action

// Told is what users are told of a write that is not done.
type Told struct {
	// Message is the server's; empty where there is nothing to tell of.
	Message string
	// ByBudget is true if a disruption budget has refused: nothing has failed, the write has to wait.
	ByBudget bool
	// NodeTooSmall is true if the node of the pod has less than the pod asks for.
	NodeTooSmall bool
}

// Failures is what a status reports of an executed plan.
type Failures struct {
	// ScaleError and UpdateError are the texts of what failed, of creates and deletes and of all else;
	// empty after success.
	ScaleError, UpdateError string
	// NodeTooSmall is true if UpdateError says that a node has less than its pod asks for.
	NodeTooSmall bool
	// Budget is the text of a disruption budget that refuses to have a pod taken out of service; empty for none.
	Budget string
	// Blocked is what another admission webhook refused; empty for nothing.
	Blocked string
	// NoProgress is true if nothing was done and nothing was tried but what had been refused before. What a plan tells
	// besides rests on it.
	NoProgress bool
}

// Add adds a failure, if there is something to tell of. Of several texts it is always the same one that stays, whichever
// was tried last.
func (r *Failures) Add(v Verb, t Told) {
	into := &r.UpdateError
	switch {
	case t.Message == "":
		return
	case t.ByBudget:
		into = &r.Budget
	case v == Create || v == Delete:
		into = &r.ScaleError
	}
	if *into != "" && t.Message >= *into {
		return
	}
	*into = t.Message
	if into == &r.UpdateError {
		r.NodeTooSmall = t.NodeTooSmall
	}
}

// WithDeferred returns the failures together with the deferred actions, which were refused before.
func (r Failures) WithDeferred(held []DeferredAction) Failures {
	for _, h := range held {
		r.Add(h.Verb, h.Told)
	}
	return r
}
