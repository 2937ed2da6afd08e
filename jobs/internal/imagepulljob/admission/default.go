package admission

import (
	"cmp"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/imagepulljob/plan"
)

// Default sets absent fields to their defaults. It is idempotent.
func Default(job *v1beta1.ImagePullJob) {
	plan.DefaultTemplate(&job.Spec.ImagePullJobTemplate)
	job.Spec.ImagePullPolicy = cmp.Or(job.Spec.ImagePullPolicy, v1beta1.PullIfNotPresent)
}
