package action

// Result is what became of a plan, as far as a status tells it.
type Result struct {
	// ScaleError and UpdateError are the texts of what failed, of creates and deletes and of all else;
	// empty after success.
	ScaleError, UpdateError string
	// Blocked is what another admission webhook, such as a budget's, refused; empty for nothing.
	Blocked string
	// InVain says that nothing was done and nothing was tried but what had been refused before. What a plan tells
	// besides rests on it.
	InVain bool
}

// Tell adds a failure. Of several texts it is always the same one that stays, whichever was tried last.
func (r *Result) Tell(v Verb, text string) {
	into := &r.UpdateError
	if v == Create || v == Delete {
		into = &r.ScaleError
	}
	if *into == "" || text < *into {
		*into = text
	}
}

// With is the result together with what was not tried because it was refused before.
func (r Result) With(held []Held) Result {
	for _, h := range held {
		r.Tell(h.Verb, h.Message)
	}
	return r
}
