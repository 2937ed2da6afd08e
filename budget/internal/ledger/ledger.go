package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/ledger"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/disruption"
)

// Ledger records grants. It is safe for concurrent use.
type Ledger struct {
	// Client writes statuses.
	Client client.Client
	// Live reads from the server.
	Live  client.Reader
	Clock clock.Clock

	once    sync.Once
	shared  *statuses
	records *Records
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
	newest := l.statuses().Newest(b)
	return l.records.Decide(newest, req, l.Clock.Now()).Refused
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
		l.records.Add(b, req, q.at)
	}
	return q.verdict.Refused, nil
}

// Through writes a status of the controller together with the grants that wait to be recorded.
func (l *Ledger) Through(ctx context.Context, object client.Object, next func(client.Object) client.Object) (client.Object, error) {
	return l.statuses().Through(ctx, object, next)
}

func (l *Ledger) statuses() *statuses {
	l.once.Do(func() {
		l.shared = &statuses{
			Client: l.Client,
			Live:   l.Live,
			Clock:  l.Clock,
			Decide: l.decideAll,
			Stands: stands,
		}
		l.records = NewRecords(l.Clock)
	})
	return l.shared
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
			q.verdict = l.records.Decide(after, q.request, now)
			q.at = now
			if q.verdict.Next != nil {
				after.Status = *q.verdict.Next
				d.After = after
			}
			d.Confirm = d.Confirm || q.verdict.Confirm
		}
		return d, nil
	}
}
