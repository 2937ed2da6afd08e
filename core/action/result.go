package action

// Result is what became of a plan, as far as a status tells it.
type Result struct {
	// ScaleError and UpdateError are the texts of what failed, of creates and deletes and of all else;
	// empty after success.
	ScaleError, UpdateError string
	// Blocked is what another admission webhook, such as a budget's, refused; empty for nothing.
	Blocked string
}
