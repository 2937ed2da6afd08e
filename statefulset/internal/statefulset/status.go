package statefulset

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/flotilla-project/flotilla/core/execute"

	"github.com/flotilla-project/flotilla/statefulset/internal/statefulset/plan"
)

// writeStatus patches the status when it changed. A refused patch met another version of the set; the
// returned time is when to look again at the latest, should no event tell of that version.
func (r *Reconciler) writeStatus(ctx context.Context, snap plan.Snapshot, todo plan.Plan, done execute.Outcome) (again time.Duration, err error) {
	after := snap.Set.DeepCopy()
	after.Status = plan.Status(snap, todo, plan.Result(done.Result()))
	wrote, err := r.Status.Patch(ctx, snap.Set, after)
	if err != nil {
		return 0, fmt.Errorf("patch status: %w", err)
	}
	if !wrote && !equality.Semantic.DeepEqual(snap.Set.Status, after.Status) {
		return execute.StaleRetry, nil
	}
	return 0, nil
}
