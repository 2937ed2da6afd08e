package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/status"
)

// newJitter returns the pauses before an object is read again that another writer has changed: several writers that have
// met once must not meet each time.
func newJitter() wait.Backoff {
	return wait.Backoff{
		Duration: 2 * time.Millisecond,
		Factor:   2,
		Jitter:   1,
		Steps:    attempts,
		Cap:      100 * time.Millisecond,
	}
}

// settle decides a batch and writes its record, from newer versions while other writers are first. It returns the version
// of the object with the decision, or the last one that was tried.
func (l *Ledger[T, Q, O]) settle(ctx context.Context, d *desk[T, Q, O], o O, batch []*question[T, Q, O]) (O, error) {
	statuses, requests := apart(batch)
	decider := l.deciderOf(statuses, requests)
	jitter := newJitter()
	live := false
	for _, q := range batch {
		q.err = nil
	}
	for range attempts {
		decision, err := decide(ctx, decider, o)
		if err != nil {
			for _, q := range batch {
				q.err = err
			}
			return o, err
		}
		settled, refused, err := l.record(ctx, d, o, decision, live, len(requests) > 0)
		switch {
		case err != nil:
			return o, err
		case settled != nil:
			return settled, nil
		case refused != nil:
			l.rest(ctx, jitter.Step())
		}
		fresh, arrived, err := l.reread(ctx, o, decision.After, refused)
		switch {
		case errors.Is(err, ErrGone):
			return nil, err
		case err != nil:
			if len(statuses) == 0 {
				d.paused.begin(err, l.Clock.Now())
			}
			return o, err
		case arrived:
			d.keep(fresh)
			return fresh, nil
		}
		o, live = fresh, true
		d.keep(o)
	}
	return o, fmt.Errorf("record a decision in %s: other clients keep changing it", o.GetName())
}

// record writes a decision about a version of the object, and returns the version with it. That is nil if the decision is to
// be made from the version that the server has: this one is not live, or refused is why the server did not take the write.
// Decisions about requests wait for the end of a pause.
func (l *Ledger[T, Q, O]) record(ctx context.Context, d *desk[T, Q, O], o O, decision Decision[O], live, requested bool) (settled O, refused, err error) {
	switch {
	case decision.After != nil:
		if err := d.paused.err(l.Clock.Now()); err != nil && requested {
			return nil, nil, err
		}
		written, refused := l.write(ctx, o, decision.After)
		if refused != nil || written == nil && !live {
			return nil, refused, nil
		}
		if requested {
			d.paused.end()
		}
		d.keep(written)
		return newer(o, written), nil, nil
	case !decision.Confirm || live:
		return o, nil, nil
	}
	return nil, nil, nil
}

// deciderOf returns the function that decides a batch: requests in view of the statuses that are to be written.
func (l *Ledger[T, Q, O]) deciderOf(statuses, requests []*question[T, Q, O]) func(context.Context, O) (Decision[O], error) {
	requested := func(context.Context, O) (Decision[O], error) { return Decision[O]{}, nil }
	if len(requests) > 0 {
		all := make([]Q, len(requests))
		for i, q := range requests {
			all[i] = q.request
		}
		requested = l.Decide(all)
	}
	return func(ctx context.Context, o O) (Decision[O], error) {
		reported := o
		for _, q := range statuses {
			q.from, q.err = o.GetResourceVersion(), nil
			if next := q.next(reported); next != nil {
				reported = next
			} else {
				q.err = ErrOutdated
			}
		}
		decision, err := requested(ctx, reported)
		if decision.After == nil && reported != o {
			decision.After = reported
		}
		return decision, err
	}
}

// decide makes an error of a panic: no caller of this goroutine recovers it.
func decide[O client.Object](ctx context.Context, by func(context.Context, O) (Decision[O], error), o O) (d Decision[O], err error) {
	defer func() {
		if r := recover(); r != nil {
			for _, handle := range utilruntime.PanicHandlers {
				handle(ctx, r)
			}
			err = fmt.Errorf("panic: %v [recovered]", r)
		}
	}()
	return by(ctx, o)
}

// rest returns after a while, or when ctx ends.
func (l *Ledger[T, Q, O]) rest(ctx context.Context, length time.Duration) {
	select {
	case <-l.Clock.After(length):
	case <-ctx.Done():
	}
}

// reread returns the object as the server has it, after the write of its status as in after was refused if refused is not
// nil. It returns the refusal if no other writer explains it: a lostError if the write may have arrived. arrived is true if the
// write has no answer, and the server has just that status.
func (l *Ledger[T, Q, O]) reread(ctx context.Context, o, after O, refused error) (fresh O, arrived bool, err error) {
	if refused != nil && !isLost(refused) && !apierrors.IsConflict(refused) && !apierrors.IsNotFound(refused) {
		return nil, false, refused
	}
	fresh = new(T)
	err = l.Live.Get(ctx, client.ObjectKeyFromObject(o), fresh)
	switch {
	case apierrors.IsNotFound(err) || err == nil && fresh.GetUID() != o.GetUID():
		return nil, false, ErrGone
	case err != nil:
		if err = fmt.Errorf("read %s: %w", o.GetName(), err); isLost(refused) {
			err = lostError{err}
		}
		return nil, false, err
	case refused != nil && fresh.GetResourceVersion() == o.GetResourceVersion():
		return nil, false, refused // it is no other writer who is in the way
	case isLost(refused) && !status.Equal(after, fresh):
		return nil, false, lostError{refused} // it may have arrived, and been written over
	}
	return fresh, isLost(refused), nil
}

// lostError is the error of a write that may have arrived: the requests that it was about may be recorded.
type lostError struct{ error }

// Unwrap returns the error without the mark.
func (e lostError) Unwrap() error { return e.error }

// isLost reports whether a write has no answer of the server's: it may have arrived all the same.
func isLost(refused error) bool {
	return refused != nil && apierrors.ReasonForError(refused) == metav1.StatusReasonUnknown
}

// write writes the status over the version that was read, and returns the object as the server has it now; nil if there was
// nothing to write.
func (l *Ledger[T, Q, O]) write(ctx context.Context, before, after O) (O, error) {
	var w written[T, O]
	_, err := status.Writer{Client: l.Client, Recorder: &w}.Patch(ctx, before, after)
	return w.object, err
}

// written keeps the server's answer.
type written[T any, O fastclient.Object[T]] struct{ object O }

// Written implements status.Recorder.
func (w *written[T, O]) Written(_ types.NamespacedName, o client.Object) { w.object, _ = o.(O) }
