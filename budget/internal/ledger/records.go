package ledger

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/disruption"
)

// recent is how many operations are remembered as recorded. One that is not is recorded once more.
const recent = 20_000

// Records are the operations that a process has recorded less than disruption.FreshFor ago. They are safe for concurrent use.
type Records struct {
	clock clock.PassiveClock
	known *cache.LRUExpireCache // record to nothing
}

// NewRecords returns records of nothing.
func NewRecords(c clock.PassiveClock) *Records {
	return &Records{c, cache.NewLRUExpireCacheWithClock(recent, c)}
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

// Decide returns the budget's verdict about a request at a moment.
func (r *Records) Decide(b *v1beta1.PodUnavailableBudget, req disruption.Request, now time.Time) disruption.Verdict {
	_, req.Recorded = r.known.Get(recordOf(b, req))
	req.Now = now
	return disruption.Decide(b, req)
}

// Add notes that a request, which was decided at that time, is recorded.
func (r *Records) Add(b *v1beta1.PodUnavailableBudget, req disruption.Request, decided time.Time) {
	r.known.Add(recordOf(b, req), nil, disruption.FreshFor-r.clock.Since(decided))
}
