package wakeups

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-project/flotilla/core/controllers/later"
)

const (
	// workers is how many lookups are under way at a time.
	workers = 8
	// firstRetry and slowestRetry are the pauses of lookups that fail again and again.
	firstRetry   = 100 * time.Millisecond
	slowestRetry = 30 * time.Second
)

// Requests is the queue of a controller.
type Requests = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Queue has the subjects of events until the objects that they wake are found. It is safe for concurrent use.
type Queue[T comparable] struct {
	find func(context.Context, T) ([]reconcile.Request, error)
	due  workqueue.TypedRateLimitingInterface[wakeup[T]]
}

// wakeup is a request to put the objects that something concerns into the queue of a controller after a while.
type wakeup[T comparable] struct {
	about T
	into  Requests
	after time.Duration
}

// New returns a queue. The requests that find returns are woken even if they come with an error, after which the lookup is
// repeated.
func New[T comparable](find func(context.Context, T) ([]reconcile.Request, error)) *Queue[T] {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[wakeup[T]](firstRetry, slowestRetry)
	return &Queue[T]{find, workqueue.NewTypedRateLimitingQueue(limiter)}
}

// Add has the objects that the subject concerns put into the queue of a controller, that long after they are found. It
// never waits.
func (q *Queue[T]) Add(about T, into Requests, after time.Duration) {
	q.due.Add(wakeup[T]{about, into, after})
}

// Run finds the objects to wake until the context ends.
func (q *Queue[T]) Run(ctx context.Context) error {
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for q.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	q.due.ShutDown()
	all.Wait()
	return nil
}

func (q *Queue[T]) next(ctx context.Context) bool {
	one, ended := q.due.Get()
	if ended || ctx.Err() != nil {
		return false
	}
	defer q.due.Done(one)
	found, err := q.find(ctx, one.about)
	for _, request := range found {
		one.into.AddAfter(request, one.after)
	}
	if err == nil {
		q.due.Forget(one)
		return true
	}
	if ctx.Err() != nil {
		return true
	}
	if wait, ok := later.Wait(err, time.Now()); ok { //nolint:forbidigo // the queue waits by this clock, too
		q.due.Forget(one)
		q.due.AddAfter(one, wait)
		return true
	}
	log.FromContext(ctx).Error(err, "Failed to find the objects of an event; retrying")
	q.due.AddRateLimited(one)
	return true
}
