package action

// Told is the report to users of a write that is not done.
type Told struct {
	// Message is the server's; empty where there is nothing to report.
	Message string
	// ByBudget is true if a disruption budget has refused: nothing has failed, the write has to wait.
	ByBudget bool
	// NodeTooSmall is true if the node of the pod has less than the pod asks for.
	NodeTooSmall bool
}

// Failures are the failures of an executed plan in a status.
type Failures struct {
	// ScaleError and UpdateError are the texts of failures, of creates and deletes and of all other actions; empty after
	// success.
	ScaleError, UpdateError string
	// NodeTooSmall is true if UpdateError reports that a node has less than its pod asks for.
	NodeTooSmall bool
	// Budget is the text of a disruption budget that refuses to have a pod taken out of service; empty for none.
	Budget string
	// Blocked is the refusal of another admission webhook; empty for none.
	Blocked string
	// NoProgress is true if nothing was done and every tried action had been refused before. The other reports of a plan
	// rest on it.
	NoProgress bool
}

// Add adds a failure, if there is something to report. Of several texts the same one always stays, whichever was tried
// last.
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
