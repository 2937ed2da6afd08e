package wakeups

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-project/flotilla/core/controllers/later"
	"github.com/flotilla-project/flotilla/core/testing/await"
)

func requestFor(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// start runs the queue until the test ends, and returns the queue of a controller.
func start(t *testing.T, q *Queue[string]) Requests {
	t.Helper()
	requests := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- q.Run(ctx) }()
	t.Cleanup(func() {
		end()
		assert.NoError(t, await.Receive(t, ended, "the lookups end"))
		requests.ShutDown()
	})
	return requests
}

// One owner that the API server takes long to return does not keep the numbers of other budgets old.
func TestASlowLookupDelaysNoOther(t *testing.T) {
	answered := make(chan struct{})
	q := New(func(_ context.Context, about string) ([]reconcile.Request, error) {
		if about == "slow" {
			<-answered
		}
		return []reconcile.Request{requestFor(about)}, nil
	})
	requests := start(t, q)
	for _, about := range []string{"slow", "quick"} {
		q.Add(about, requests, 0)
	}
	woken, _ := requests.Get()
	assert.Equal(t, "quick", woken.Name)
	close(answered)
	woken, _ = requests.Get()
	assert.Equal(t, "slow", woken.Name)
}

func TestAFailedLookupIsRepeated(t *testing.T) {
	lookups := 0
	q := New(func(context.Context, string) ([]reconcile.Request, error) {
		if lookups++; lookups < 3 {
			return []reconcile.Request{requestFor("known")}, errors.New("the owners of others are not known")
		}
		return []reconcile.Request{requestFor("other")}, nil
	})
	requests := start(t, q)
	q.Add("budget", requests, 0)
	woken, _ := requests.Get()
	assert.Equal(t, "known", woken.Name)
	requests.Done(woken)
	for woken.Name != "other" {
		woken, _ = requests.Get()
		requests.Done(woken)
	}
}

// A lookup is repeated when the server is asked again, and not before.
func TestALookupWaitsForAServerThatDoesNotAnswer(t *testing.T) {
	const silence = 50 * time.Millisecond
	var lookups []time.Time
	q := New(func(context.Context, string) ([]reconcile.Request, error) {
		if lookups = append(lookups, time.Now()); len(lookups) < 3 {
			return nil, &later.Error{Err: errors.New("no answer"), At: time.Now().Add(silence)}
		}
		return []reconcile.Request{requestFor("other")}, nil
	})
	requests := start(t, q)
	q.Add("owner", requests, 0)
	woken, _ := requests.Get()
	assert.Equal(t, "other", woken.Name)
	for i := 1; i < len(lookups); i++ {
		assert.GreaterOrEqual(t, lookups[i].Sub(lookups[i-1]), silence)
	}
}
