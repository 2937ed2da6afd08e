package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/ledger"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/disruption"
)

// recent is how many operations are remembered as recorded. One that is not is recorded once more.
const recent = 20_000

// Ledger records grants. It is safe for concurrent use.
type Ledger struct {
	// Client writes statuses.
	Client client.Client
	// Live reads from the server.
	Live  client.Reader
	Clock clock.Clock

	once     sync.Once
	shared   *statuses
	recorded *cache.LRUExpireCache // record to nothing
}

type statuses = ledger.Ledger[v1beta1.PodUnavailableBudget, *question, *v1beta1.PodUnavailableBudget]

// question is a request with the last decision about it.
type question struct {
	request disruption.Request
	verdict disruption.Verdict
	at      time.Time
}

// Check returns why a budget refuses the request now, empty if it does not. It records nothing.
func (l *Ledger) Check(b *v1beta1.PodUnavailableBudget, req disruption.Request) string {
	return l.decide(l.statuses().Newest(b), req, l.Clock.Now()).Refused
}

// Ask records the request and returns an empty text if the budget, which the cache has so, grants it; otherwise it returns
// the reason for the refusal. After an error the outcome is unknown.
func (l *Ledger) Ask(ctx context.Context, b *v1beta1.PodUnavailableBudget, req disruption.Request) (refused string, err error) {
	q := &question{request: req}
	_, err = l.statuses().Ask(ctx, b, q)
	switch {
	case errors.Is(err, ledger.ErrGone):
		return "", nil // no budget protects the pod any more
	case err != nil:
		return "", fmt.Errorf("check budget %s: %w", b.Name, err)
	case q.verdict.Next != nil:
		l.recorded.Add(recordOf(b, req), nil, disruption.FreshFor-l.Clock.Since(q.at))
	}
	return q.verdict.Refused, nil
}

// Through writes a status of the controller together with the grants that wait to be recorded.
func (l *Ledger) Through(ctx context.Context, object client.Object, next func(client.Object) client.Object) (client.Object, error) {
	return l.statuses().Through(ctx, object, next)
}

func (l *Ledger) statuses() *statuses {
	l.once.Do(func() {
		l.shared = &statuses{Client: l.Client, Live: l.Live, Clock: l.Clock, Decide: l.decideAll, Stands: stands}
		l.recorded = cache.NewLRUExpireCacheWithClock(recent, l.Clock)
	})
	return l.shared
}

// record is an operation that this process has recorded.
type record struct {
	budget, pod types.UID
	op          v1beta1.PubOperation
	// version of the pod: a grant to change it holds for this one.
	version string
}

func recordOf(b *v1beta1.PodUnavailableBudget, req disruption.Request) record {
	r := record{budget: b.UID, pod: req.Pod.UID, op: req.Operation}
	if r.op != v1beta1.DeleteOperation && r.op != v1beta1.EvictOperation {
		r.version = req.Pod.ResourceVersion
	}
	return r
}

// decide decides one request.
func (l *Ledger) decide(b *v1beta1.PodUnavailableBudget, req disruption.Request, now time.Time) disruption.Verdict {
	_, req.Recorded = l.recorded.Get(recordOf(b, req))
	req.Now = now
	return disruption.Decide(b, req)
}

// stands reports whether a request is refused, or neither to be recorded nor to be confirmed.
func stands(q *question) bool {
	return q.verdict.Refused != "" || q.verdict.Next == nil && !q.verdict.Confirm
}

// decideAll decides a batch, each request in view of those before it.
func (l *Ledger) decideAll(batch []*question) func(context.Context, *v1beta1.PodUnavailableBudget) (ledger.Decision[*v1beta1.PodUnavailableBudget], error) {
	return func(_ context.Context, b *v1beta1.PodUnavailableBudget) (d ledger.Decision[*v1beta1.PodUnavailableBudget], err error) {
		now, after := l.Clock.Now(), new(*b) // decisions change no status: they return new ones
		for _, q := range batch {
			q.verdict, q.at = l.decide(after, q.request, now), now
			if q.verdict.Next != nil {
				after.Status = *q.verdict.Next
				d.After = after
			}
			d.Confirm = d.Confirm || q.verdict.Confirm
		}
		return d, nil
	}
}
