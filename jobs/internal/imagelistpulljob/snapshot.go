package imagelistpulljob

import (
	"context"
	"fmt"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/imagelistpulljob/plan"
)

// snapshot reads the input of the plan for a job.
func (r *reconciler) snapshot(ctx context.Context, job *v1beta1.ImageListPullJob) (plan.Snapshot, error) {
	s := plan.Snapshot{Job: job, Now: r.Clock.Now()}
	var err error
	if s.Children, err = fastclient.Controlled[v1beta1.ImagePullJob](ctx, r.Reader, job); err != nil {
		return plan.Snapshot{}, fmt.Errorf("read the image pull jobs of a list: %w", err)
	}
	s.Refusals = r.KnownRefusals(job, nil, 0, s.Now)
	return s, nil
}
