package advancedcronjob

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/advancedcronjob/plan"
)

// snapshot reads the objects of one AdvancedCronJob.
func (r *reconciler) snapshot(ctx context.Context, key types.NamespacedName) (plan.Snapshot, error) {
	s := plan.Snapshot{Now: r.Clock.Now()}
	if r.over != nil {
		s.Forbidden = r.gate.Forbidden()
		s.NotServed = !s.Forbidden
	}
	var err error
	if s.Cron, err = fastclient.Get[v1beta1.AdvancedCronJob](ctx, r.Reader, key); err != nil {
		return s, fmt.Errorf("read advanced cron job %s: %w", key, err)
	}
	if r.over == nil {
		if s.Children, err = r.kind.children(ctx, r.Reader, s.Cron); err != nil {
			return s, err
		}
	}
	s.Refusals = r.KnownRefusals(s.Cron, nil, 0, s.Now)
	return s, nil
}
