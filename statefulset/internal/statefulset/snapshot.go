package statefulset

import (
	"context"

	"github.com/flotilla-project/flotilla/core/frame"
	"github.com/flotilla-project/flotilla/core/workloads/failures"
	"github.com/flotilla-project/flotilla/core/workloads/model"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
	"github.com/flotilla-project/flotilla/statefulset/internal/statefulset/plan"
)

// sources are where a snapshot comes from, with the cache.
type sources struct {
	failed       *failures.Memory
	known        classes
	featureGates plan.FeatureGates
}

// snapshot completes the frame's snapshot.
func (s *sources) snapshot(ctx context.Context, c *frame.Controller, seen model.Snapshot[*v1beta1.StatefulSet]) (plan.Snapshot, error) {
	next := plan.Snapshot{
		Snapshot:      seen,
		RetryFailedAt: plan.RetryFailedAt(s.failed, seen),
		FeatureGates:  s.featureGates,
	}
	if s.featureGates.AutoDeletePVC {
		var err error
		if next.Claims, err = claimsOf(ctx, c, seen.Set); err != nil {
			return next, err
		}
	}
	if s.featureGates.AutoResizePVC && seen.Set.Spec.VolumeClaimUpdateStrategy.Type == v1beta1.OnPodRollingUpdate {
		next.Expandable, next.ClassesErr = s.known.expandable(ctx, c)
	}
	return next.Observed(), nil
}
