package cloneset

import (
	"context"
	"fmt"

	"github.com/flotilla-project/flotilla/core/action"
	"github.com/flotilla-project/flotilla/core/execute"

	"github.com/flotilla-project/flotilla/cloneset/internal/cloneset/plan"
)

// writeStatus patches the status when it changed.
func (r *Reconciler) writeStatus(ctx context.Context, snap plan.Snapshot, todo plan.Plan, done execute.Outcome) error {
	after := snap.Set.DeepCopy()
	after.Status = plan.Status(snap, todo, resultOf(done))
	if _, err := r.Status.Patch(ctx, snap.Set, after); err != nil {
		return fmt.Errorf("patch status: %w", err)
	}
	return nil
}

// resultOf says what of the outcome the status tells.
func resultOf(done execute.Outcome) plan.Result {
	var scale, update []error
	for _, result := range done.Results {
		if result.State != execute.Failed && result.State != execute.Blocked {
			continue
		}
		if result.Action.Verb == action.Create || result.Action.Verb == action.Delete {
			scale = append(scale, result.Err)
		} else {
			update = append(update, result.Err)
		}
	}
	result := plan.Result{ScaleError: first(scale), UpdateError: first(update)}
	if len(done.Blocked) > 0 {
		result.Blocked = done.Blocked[0].Message
	}
	return result
}

// first is the text of the errors, shortened to one and the number of others.
func first(errs []error) string {
	switch len(errs) {
	case 0:
		return ""
	case 1:
		return errs[0].Error()
	}
	return fmt.Sprintf("%v (and %d more)", errs[0], len(errs)-1)
}
