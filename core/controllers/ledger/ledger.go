package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
)

const (
	// timeout bounds the answer to a batch of requests. It is shorter than the timeout of the webhooks.
	timeout = 4 * time.Second
	// attempts is how often a batch is decided, each time from a newer version.
	attempts = 8
)

// ErrGone means that the object is gone, so that there is nothing to record a decision in.
var ErrGone = errors.New("the object is gone")

// ErrOutdated means that a status cannot be computed for the version of the object that the server has.
var ErrOutdated = errors.New("another client has changed it")

// Ledger decides requests about objects of a kind, and records the decisions in their statuses. It is safe for concurrent
// use.
type Ledger[T, Q any, O fastclient.Object[T]] struct {
	// Client writes statuses.
	Client client.Client
	// Live reads from the server.
	Live  client.Reader
	Clock clock.Clock
	// Decide returns the function that decides a batch of requests, each in view of the requests before it. Decide is
	// called once a batch, and the function once an attempt: the function may keep its findings for later attempts.
	// Decisions must leave the given object as it is.
	Decide func(batch []Q) func(ctx context.Context, o O) (Decision[O], error)
	// Stands, unless nil, reports whether the last decision about a request holds though its batch was not recorded.
	Stands func(Q) bool

	mu    sync.Mutex
	desks desks[desk[T, Q, O]]
}

// Decision is the outcome of a batch.
type Decision[O client.Object] struct {
	// After is the object with the status to be written before any request is answered, nil if there is nothing to write.
	After O
	// Confirm is true if the decision must be made from the version that the server has. A write of the status confirms
	// it.
	Confirm bool
}

// Newest returns the newest version of an object that is known here, given one from a cache.
func (l *Ledger[T, Q, O]) Newest(o O) O {
	d := l.desk(o)
	d.mu.Lock()
	defer d.mu.Unlock()
	return newer(o, d.newest)
}

// Ask decides a request about an object, which the cache has so, and returns when the decision is recorded, or need not be.
// It returns the object that the decision was made from, or that it was written into. The error is ErrGone if there is no
// such object any more. After any other error it is unknown whether the decision is recorded.
func (l *Ledger[T, Q, O]) Ask(ctx context.Context, o O, request Q) (O, error) {
	return l.enter(ctx, o, &question[T, Q, O]{request: request})
}

// Write writes a status together with the decisions that wait, so that writers of one process are not in each other's way.
// next returns the object with its next status, given the newest version; it may be called several times. If it returns nil
// the error is ErrOutdated. Write returns the object as it was written; nil if the status was the same.
func (l *Ledger[T, Q, O]) Write(ctx context.Context, o O, next func(newest O) O) (O, error) {
	q := &question[T, Q, O]{next: next}
	written, err := l.enter(ctx, o, q)
	if err != nil || written.GetResourceVersion() == q.from {
		return nil, err
	}
	return written, nil
}

// Through returns Write in the form that a pass of a controller takes.
func (l *Ledger[T, Q, O]) Through(ctx context.Context, object client.Object, next func(client.Object) client.Object) (client.Object, error) {
	o, ok := object.(O)
	if !ok {
		return nil, fmt.Errorf("write the status of a %T: the ledger is of another kind", object)
	}
	written, err := l.Write(ctx, o, func(newest O) O {
		after, _ := next(newest).(O)
		return after
	})
	if written == nil {
		return nil, err
	}
	return written, err
}

// enter has a question answered with others that wait.
func (l *Ledger[T, Q, O]) enter(ctx context.Context, o O, q *question[T, Q, O]) (O, error) {
	d := l.desk(o)
	q.answer = make(chan answer[O], 1)
	d.mu.Lock()
	d.newest = newer(o, d.newest)
	d.waiting = append(d.waiting, q)
	if !d.busy {
		d.busy = true
		go l.work(context.WithoutCancel(ctx), d)
	}
	d.mu.Unlock()
	select {
	case a := <-q.answer:
		return a.object, a.err
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the ledger of %s: %w", o.GetName(), ctx.Err())
	}
}

// desk is where requests about one object meet.
type desk[T, Q any, O fastclient.Object[T]] struct {
	mu      sync.Mutex
	newest  O
	waiting []*question[T, Q, O]
	busy    bool
	paused  pauses // of all writers here: controllers have pauses of their own
}

// question is a request, or a status to be written.
type question[T, Q any, O fastclient.Object[T]] struct {
	request Q
	next    func(O) O // of a status, nil of a request
	from    string    // the version that next was asked about last
	err     error     // of this question alone, or because nothing was decided
	answer  chan answer[O]
}

type answer[O client.Object] struct {
	object O
	err    error
}

func (l *Ledger[T, Q, O]) desk(o O) *desk[T, Q, O] {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.desks.of(o.GetUID(), l.Clock.Now())
}

// work answers the waiting requests, and requests that arrive while it runs.
func (l *Ledger[T, Q, O]) work(ctx context.Context, d *desk[T, Q, O]) {
	for {
		d.mu.Lock()
		batch, o := d.waiting, d.newest
		d.waiting = nil
		if len(batch) == 0 {
			d.busy = false
			d.mu.Unlock()
			return
		}
		d.mu.Unlock()
		l.answer(ctx, d, o, batch)
	}
}

// answer decides a batch, and answers its questions when that is recorded. Statuses and requests that cannot be written
// together are written apart: neither stops the other. A request that may be recorded is not decided again, since the decision
// might be about its own record; a status can be written twice.
func (l *Ledger[T, Q, O]) answer(ctx context.Context, d *desk[T, Q, O], o O, batch []*question[T, Q, O]) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	last, err := l.settle(ctx, d, o, batch)
	statuses, requests := apart(batch)
	if err == nil || errors.Is(err, ErrGone) || len(statuses) == 0 || len(requests) == 0 {
		l.reply(batch, last, err)
		return
	}
	parts := [][]*question[T, Q, O]{statuses, requests}
	if errors.As(err, new(lostError)) {
		l.reply(requests, last, err)
		parts = parts[:1]
	}
	for _, part := range parts {
		settled, err := l.settle(ctx, d, last, part)
		l.reply(part, settled, err)
		last = newer(last, settled)
	}
}

// reply answers questions. A request that stands without a record is no error if it could not be recorded.
func (l *Ledger[T, Q, O]) reply(batch []*question[T, Q, O], o O, err error) {
	for _, q := range batch {
		switch {
		case q.err != nil:
			q.answer <- answer[O]{o, q.err}
		case err != nil && !errors.Is(err, ErrGone) && q.next == nil && l.Stands != nil && l.Stands(q.request):
			q.answer <- answer[O]{object: o}
		default:
			q.answer <- answer[O]{o, err}
		}
	}
}

// apart returns the statuses and the requests of a batch.
func apart[T, Q any, O fastclient.Object[T]](batch []*question[T, Q, O]) (statuses, requests []*question[T, Q, O]) {
	for _, q := range batch {
		if q.next != nil {
			statuses = append(statuses, q)
		} else {
			requests = append(requests, q)
		}
	}
	return statuses, requests
}

// keep remembers a version that the server has shown.
func (d *desk[T, Q, O]) keep(o O) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.newest = newer(o, d.newest)
}

// newer returns the newer one of two versions of an object. Either may be nil.
func newer[T any, O fastclient.Object[T]](a, b O) O {
	if a == nil || b == nil {
		if a == nil {
			return b
		}
		return a
	}
	if order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion()); err == nil && order < 0 {
		return b
	}
	return a
}
