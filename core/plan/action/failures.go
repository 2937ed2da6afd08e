package action

// Failures is what a status reports of an executed plan.
type Failures struct {
	// ScaleError and UpdateError are the texts of what failed, of creates and deletes and of all else;
	// empty after success.
	ScaleError, UpdateError string
	// Blocked is what another admission webhook, such as a budget's, refused; empty for nothing.
	Blocked string
	// NoProgress is true if nothing was done and nothing was tried but what had been refused before. What a plan tells
	// besides rests on it.
	NoProgress bool
}

// Add adds a failure. Of several texts it is always the same one that stays, whichever was tried last.
func (r *Failures) Add(v Verb, text string) {
	into := &r.UpdateError
	if v == Create || v == Delete {
		into = &r.ScaleError
	}
	if *into == "" || text < *into {
		*into = text
	}
}

// WithDeferred returns the failures together with the deferred actions, which were refused before.
func (r Failures) WithDeferred(held []DeferredAction) Failures {
	for _, h := range held {
		r.Add(h.Verb, h.Message)
	}
	return r
}
