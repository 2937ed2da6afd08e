package ledger

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/status"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/podunavailablebudget/plan"
)

const (
	// timeout bounds the answer to a batch of requests. It is shorter than that of the webhooks.
	timeout = 4 * time.Second
	// attempts is how often a batch is decided, each time from a newer version.
	attempts = 8
	// desks is how many budgets are remembered. Nothing is lost with one that is not.
	desks = 10_000
)

// Ledger records grants. It is safe for concurrent use.
type Ledger struct {
	// Client writes statuses.
	Client client.Client
	// Live reads from the server.
	Live  client.Reader
	Clock clock.PassiveClock

	mu    sync.Mutex
	desks *lru.Cache // types.UID to *desk
}

// Check returns why a budget refuses the request now, empty if it does not. It records nothing.
func (l *Ledger) Check(b *v1beta1.PodUnavailableBudget, req plan.Request) string {
	d := l.desk(b)
	d.mu.Lock()
	b = newer(b, d.newest)
	d.mu.Unlock()
	return d.decide(b, req, l.Clock.Now()).Refused
}

// Ask records the request and returns an empty text if the budget, which the cache has so, grants it; otherwise it
// returns why not. An error means that nobody knows.
func (l *Ledger) Ask(ctx context.Context, b *v1beta1.PodUnavailableBudget, req plan.Request) (refused string, err error) {
	d := l.desk(b)
	asked := &question{request: req, answer: make(chan answer, 1)}
	d.mu.Lock()
	d.newest = newer(b, d.newest)
	d.waiting = append(d.waiting, asked)
	if !d.busy {
		d.busy = true
		go l.work(context.WithoutCancel(ctx), d)
	}
	d.mu.Unlock()
	select {
	case a := <-asked.answer:
		return a.refused, a.err
	case <-ctx.Done():
		return "", fmt.Errorf("wait for the ledger of budget %s: %w", b.Name, ctx.Err())
	}
}

// desk is where requests about one budget meet.
type desk struct {
	mu      sync.Mutex
	newest  *v1beta1.PodUnavailableBudget
	waiting []*question
	busy    bool
	paused  pauses // of whoever works

	recorded sync.Map // record to the time of its write
}

// record is an operation that this process has recorded.
type record struct {
	pod types.UID
	op  v1beta1.PubOperation
	// version of the pod: a grant to change it holds for this one.
	version string
}

func recordOf(req plan.Request) record {
	r := record{pod: req.Pod.UID, op: req.Operation}
	if r.op != v1beta1.DeleteOperation && r.op != v1beta1.EvictOperation {
		r.version = req.Pod.ResourceVersion
	}
	return r
}

type question struct {
	request plan.Request
	answer  chan answer
}

type answer struct {
	refused string
	err     error
}

func (l *Ledger) desk(b *v1beta1.PodUnavailableBudget) *desk {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.desks == nil {
		l.desks = lru.New(desks)
	}
	if d, ok := l.desks.Get(b.UID); ok {
		return d.(*desk)
	}
	d := &desk{}
	l.desks.Add(b.UID, d)
	return d
}

// work answers the waiting requests, and those that arrive meanwhile.
func (l *Ledger) work(ctx context.Context, d *desk) {
	for {
		d.mu.Lock()
		batch, b := d.waiting, d.newest
		d.waiting = nil
		if len(batch) == 0 {
			d.busy = false
			d.mu.Unlock()
			return
		}
		d.mu.Unlock()
		l.answer(ctx, d, b, batch)
		d.prune(l.Clock.Now())
	}
}

// answer decides a batch and writes what it grants, all at once.
func (l *Ledger) answer(ctx context.Context, d *desk, b *v1beta1.PodUnavailableBudget, batch []*question) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	live := false
	for range attempts {
		after, verdicts, confirm := d.decideAll(b, batch, l.Clock.Now())
		writes := wants(verdicts)
		if err := d.paused.err(l.Clock.Now()); writes && err != nil {
			fail(batch, verdicts, err)
			return
		}
		var refused error
		switch {
		case writes:
			begun := l.Clock.Now()
			var written *v1beta1.PodUnavailableBudget
			if written, refused = l.write(ctx, b, after); written != nil || refused == nil && live {
				d.paused.end()
				d.keep(written)
				d.remember(batch, verdicts, begun)
				reply(batch, verdicts)
				return
			}
		case !confirm || live:
			reply(batch, verdicts)
			return
		}
		fresh, err := l.reread(ctx, b, refused)
		if err != nil {
			d.paused.begin(err, l.Clock.Now())
			fail(batch, verdicts, err)
			return
		}
		if fresh == nil {
			reply(batch, make([]plan.Verdict, len(batch))) // nobody protects the pods any more
			return
		}
		b, live = fresh, true
		d.keep(b)
	}
	fail(batch, nil, fmt.Errorf("record a grant of budget %s: others write it all the time", b.Name))
}

// reread returns the budget as the server has it, after a write of its status was refused if refused is not nil. It is nil
// if the budget is gone. It returns an error if the write was not refused for what others have written.
func (l *Ledger) reread(ctx context.Context, b *v1beta1.PodUnavailableBudget, refused error) (*v1beta1.PodUnavailableBudget, error) {
	if refused != nil && !apierrors.IsConflict(refused) && !apierrors.IsNotFound(refused) {
		return nil, refused
	}
	fresh := &v1beta1.PodUnavailableBudget{}
	err := l.Live.Get(ctx, client.ObjectKeyFromObject(b), fresh)
	switch {
	case apierrors.IsNotFound(err) || err == nil && fresh.UID != b.UID:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read budget %s: %w", b.Name, err)
	case refused != nil && fresh.ResourceVersion == b.ResourceVersion:
		return nil, refused // it is no other writer who is in the way
	}
	return fresh, nil
}

// write writes the status over the version that was read, and returns the budget as the server has it now; nil if there
// was nothing to write.
func (l *Ledger) write(ctx context.Context, before, after *v1beta1.PodUnavailableBudget) (*v1beta1.PodUnavailableBudget, error) {
	var w written
	_, err := status.Writer{Client: l.Client, Recorder: &w}.Patch(ctx, before, after)
	return w.budget, err
}

// written keeps the server's answer.
type written struct{ budget *v1beta1.PodUnavailableBudget }

// Written implements status.Recorder.
func (w *written) Written(_ types.NamespacedName, o client.Object) {
	w.budget, _ = o.(*v1beta1.PodUnavailableBudget)
}

// newer returns the newer one of two versions of a budget. Either may be nil.
func newer(a, b *v1beta1.PodUnavailableBudget) *v1beta1.PodUnavailableBudget {
	if a == nil || b == nil {
		if a == nil {
			return b
		}
		return a
	}
	if order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion); err == nil && order < 0 {
		return b
	}
	return a
}
