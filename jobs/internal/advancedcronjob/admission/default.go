package admission

import (
	"cmp"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/advancedcronjob/plan"
	pullplan "github.com/flotilla-project/flotilla/jobs/internal/imagepulljob/plan"
)

// Default sets absent fields to their defaults. The templates of Jobs and BroadcastJobs stay as they were written. It is
// idempotent.
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
	if t := spec.Template.ImageListPullJobTemplate; t != nil {
		defaultImageList(&t.Spec)
	}
}

// defaultImageList sets absent fields to their defaults where not even the type of completion is given, as OpenKruise
// does.
func defaultImageList(spec *v1beta1.ImageListPullJobSpec) {
	if spec.CompletionPolicy.Type != "" {
		return
	}
	pullplan.DefaultTemplate(&spec.ImagePullJobTemplate)
	spec.ImagePullPolicy = cmp.Or(spec.ImagePullPolicy, v1beta1.PullIfNotPresent)
}
