package admission

import (
	"cmp"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/advancedcronjob/plan"
)

// Default sets absent fields to their defaults, but for those of the template. It is idempotent.
func Default(cron *v1beta1.AdvancedCronJob) {
	spec := &cron.Spec
	policy := v1beta1.AllowConcurrent
	if plan.KindOf(cron) == v1beta1.TemplateImageListPullJob {
		policy = v1beta1.ReplaceConcurrent
	}
	spec.ConcurrencyPolicy = cmp.Or(spec.ConcurrencyPolicy, policy)
	if spec.Paused == nil {
		spec.Paused = new(false)
	}
	if spec.SuccessfulJobsHistoryLimit == nil {
		spec.SuccessfulJobsHistoryLimit = new(int32(plan.DefaultSuccessfulJobs))
	}
	if spec.FailedJobsHistoryLimit == nil {
		spec.FailedJobsHistoryLimit = new(int32(plan.DefaultFailedJobs))
	}
}
