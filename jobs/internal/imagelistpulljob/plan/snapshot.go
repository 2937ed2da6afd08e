package plan

import (
	"time"

	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// Snapshot is the input of the plan for one job, read-only.
type Snapshot struct {
	// Job is the job.
	Job *v1beta1.ImageListPullJob
	// Children are the ImagePullJobs that it controls.
	Children []*v1beta1.ImagePullJob
	// Refusals are the writes that the server has refused before.
	Refusals action.Refusals
	// Now is the time of the pass.
	Now time.Time
}
