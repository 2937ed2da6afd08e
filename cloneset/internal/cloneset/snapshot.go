package cloneset

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/frame"
	"github.com/flotilla-project/flotilla/core/workloads/failures"
	"github.com/flotilla-project/flotilla/core/workloads/model"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/cloneset/internal/cloneset/plan"
)

// sources are where a snapshot comes from, with the cache.
type sources struct {
	failed       *failures.Memory
	featureGates plan.FeatureGates
}

// snapshot completes the frame's snapshot.
func (s sources) snapshot(ctx context.Context, c *frame.Controller, seen model.Snapshot[*v1beta1.CloneSet]) (plan.Snapshot, error) {
	claims, err := fastclient.Controlled[corev1.PersistentVolumeClaim](ctx, c.Reader, seen.Set)
	if err != nil {
		return plan.Snapshot{}, fmt.Errorf("list claims: %w", err)
	}
	next := plan.Snapshot{
		Snapshot:      seen,
		Claims:        claims,
		RetryFailedAt: plan.RetryFailedAt(s.failed, seen),
		FeatureGates:  s.featureGates,
	}
	return next.Observed(), nil
}
