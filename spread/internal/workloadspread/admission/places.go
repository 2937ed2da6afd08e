package admission

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/subsets"
)

// Places keeps the places of subsets in the statuses of spreads.
type Places interface {
	// Known returns a spread as far as it is known without a request.
	Known(ctx context.Context, key types.NamespacedName) (*v1beta1.WorkloadSpread, error)
	// Enter enters a request in the books of a spread, and returns when it is recorded, or need not be. If the spread is gone
	// the error satisfies apierrors.IsNotFound.
	Enter(ctx context.Context, key types.NamespacedName, r Request) error
}

// Request is something to be entered in the books of a spread.
type Request struct {
	replicas *int32
	pod      string // to be looked up before, empty for none
	enter    func(b *subsets.Books, gone func(pod string) bool)
	counted  func(version string) map[string]int32 // as subsets.Books have it; nil of a deletion
}

// EnterIn returns the spread with the entries of the request in its books, nil if there are none. gone reports whether a pod
// has ended, or is about to.
func (r *Request) EnterIn(spread *v1beta1.WorkloadSpread, gone func(pod string) bool) *v1beta1.WorkloadSpread {
	after, _ := entered(spread, []*Request{r}, gone)
	return after
}

// entered returns the spread with the entries of a group of requests, nil if there are none, and whether a pod went past a
// subset because that was full.
func entered(base *v1beta1.WorkloadSpread, group []*Request, gone func(pod string) bool) (after *v1beta1.WorkloadSpread, passedOver bool) {
	after = base.DeepCopy()
	books := subsets.Open(after, subsets.Limits(after, replicasOf(group)))
	books.Counted = countedBy(group)
	for _, r := range group {
		r.enter(books, gone)
	}
	passedOver = books.PassedOver()
	if !books.Close() {
		after = nil
	}
	return after, passedOver
}

// replicasOf are the replicas that were read last.
func replicasOf(group []*Request) (replicas *int32) {
	for _, r := range group {
		if r.replicas != nil {
			replicas = r.replicas
		}
	}
	return replicas
}

// countedBy is how a request counts pods: all do it alike, but for deletions, which need not.
func countedBy(group []*Request) func(version string) map[string]int32 {
	for _, r := range group {
		if r.counted != nil {
			return r.counted
		}
	}
	return nil
}
