// Package later has errors that pass by themselves. A caller that meets one waits until its cause is looked into again: until
// then each try ends the same way.
package later

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// soon is the shortest wait: the cause may be looked into at once.
const soon = time.Millisecond

// Error is an error whose cause is looked into again at a time.
type Error struct {
	// Err is the error.
	Err error
	// At is when its cause is looked into again.
	At time.Time
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Wait returns how long it takes until the cause of an error is looked into again; false for any other error. It is
// positive.
func Wait(err error, now time.Time) (time.Duration, bool) {
	if e, ok := errors.AsType[*Error](err); ok {
		return max(e.At.Sub(now), soon), true
	}
	return 0, false
}

// OfAnother returns an error about another object than the one that is reconciled. It does not satisfy
// apierrors.IsNotFound, which would mean that the reconciled object is gone.
func OfAnother(err error) error {
	if !apierrors.IsNotFound(err) {
		return err
	}
	hidden := errors.New(err.Error())
	if e, ok := errors.AsType[*Error](err); ok {
		return &Error{Err: hidden, At: e.At}
	}
	return hidden
}
