package faults

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// patience is the limit of each wait, and oneTry that of one try in it: an API server that is killed may leave a request
	// without an answer.
	patience = 8 * time.Minute
	oneTry   = 20 * time.Second
	// pause is the time between two tries.
	pause = 250 * time.Millisecond
)

// until tries again until the check returns nil, and returns its last error when patience is over, without the error of a try
// that the end of patience cut off. An object that is invalid stays so: that error is returned at once.
func until(ctx context.Context, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var last error
	for {
		try, stop := context.WithTimeout(ctx, oneTry)
		err := check(try)
		stop()
		if err == nil || apierrors.IsInvalid(err) {
			return err
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		linger(ctx, pause)
		if ctx.Err() != nil {
			return errors.Join(fmt.Errorf("after %s", patience), last)
		}
	}
}

// linger waits for that time, or until the context ends.
func linger(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
