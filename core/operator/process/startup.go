package process

import (
	"errors"
	"sync/atomic"
)

// Startup is a readiness check that fails while a process starts. The zero value is one that has started. It is safe
// for concurrent use.
type Startup struct{ reason atomic.Pointer[string] }

// NotReady makes the check fail with the reason.
func (s *Startup) NotReady(reason string) { s.reason.Store(&reason) }

// Done makes the check succeed.
func (s *Startup) Done() { s.reason.Store(nil) }

// Check returns the reason as an error, or nil.
func (s *Startup) Check() error {
	if reason := s.reason.Load(); reason != nil {
		return errors.New(*reason)
	}
	return nil
}
