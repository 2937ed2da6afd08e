package admission

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/workloads/validation"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/advancedcronjob/schedule"
	broadcastadmission "github.com/flotilla-project/flotilla/jobs/internal/broadcastjob/admission"
	listadmission "github.com/flotilla-project/flotilla/jobs/internal/imagelistpulljob/admission"
)

const (
	// longestName leaves room for the time of a run in the names of jobs, which end at 63 characters.
	longestName = 52
	// longestDeadline bounds how long images are pulled, in seconds.
	longestDeadline = 24 * 3600
)

// Validate returns the errors in an AdvancedCronJob, except for the rules of Jobs and pods, which the cluster knows,
// and for fields that never change. Old is the stored one, nil on create: errors that old has, too, do not prevent
// other changes, except for an unknown time zone: no job would ever be made.
func Validate(cron, old *v1beta1.AdvancedCronJob) field.ErrorList {
	if old == nil {
		return append(validateName(cron.Name, field.NewPath("metadata", "name")), ValidateSpec(&cron.Spec, field.NewPath("spec"))...)
	}
	if equality.Semantic.DeepEqual(cron.Spec, old.Spec) {
		return nil
	}
	at := field.NewPath("spec")
	stored := ValidateSpec(&old.Spec, at)
	stored = slices.DeleteFunc(stored, func(err *field.Error) bool { return err.Field == at.Child("timeZone").String() })
	return validation.WithoutStored(ValidateSpec(&cron.Spec, at), stored)
}

func validateName(name string, at *field.Path) field.ErrorList {
	if len(name) > longestName {
		return field.ErrorList{field.Invalid(at, name, fmt.Sprintf("must be no more than %d characters so that the names of its jobs fit 63", longestName))}
	}
	return broadcastadmission.ValidateName(name, at)
}

// ValidateSpec returns the errors in a spec, with the exceptions of Validate.
func ValidateSpec(spec *v1beta1.AdvancedCronJobSpec, at *field.Path) field.ErrorList {
	errs := validateSchedule(spec, at)
	if s := spec.StartingDeadlineSeconds; s != nil && *s < 0 {
		errs = append(errs, field.Invalid(at.Child("startingDeadlineSeconds"), *s, "must be greater than or equal to 0"))
	}
	errs = append(errs, validation.NonNegative(spec.SuccessfulJobsHistoryLimit, at.Child("successfulJobsHistoryLimit"))...)
	errs = append(errs, validation.NonNegative(spec.FailedJobsHistoryLimit, at.Child("failedJobsHistoryLimit"))...)
	errs = append(errs, validateKind(&spec.Template, at.Child("template"))...)
	if t := spec.Template.BroadcastJobTemplate; t != nil {
		errs = append(errs, broadcastadmission.ValidateSpec(&t.Spec, at.Child("template", "broadcastJobTemplate", "spec"))...)
	}
	return append(errs, validateImageList(spec, at)...)
}

func validateSchedule(spec *v1beta1.AdvancedCronJobSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if zone, zoneAt := spec.TimeZone, at.Child("timeZone"); zone != nil {
		_, err := schedule.Parse("@daily", zone)
		switch {
		case strings.Contains(spec.Schedule, "TZ"):
			errs = append(errs, field.Invalid(zoneAt, *zone, "timeZone cannot be set when the schedule names a time zone"))
		case err != nil || strings.EqualFold(*zone, "Local"):
			errs = append(errs, field.Invalid(zoneAt, *zone, fmt.Sprintf("unknown time zone %q", *zone)))
		}
	}
	if spec.Schedule == "" {
		return append(errs, field.Required(at.Child("schedule"), "a schedule in cron format is required"))
	}
	if _, err := schedule.Parse(spec.Schedule, nil); err != nil {
		errs = append(errs, field.Invalid(at.Child("schedule"), spec.Schedule, err.Error()))
	}
	return errs
}

// validateKind wants one template.
func validateKind(t *v1beta1.CronJobTemplate, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	first := ""
	for _, member := range []struct {
		name string
		set  bool
	}{
		{"jobTemplate", t.JobTemplate != nil}, {"broadcastJobTemplate", t.BroadcastJobTemplate != nil},
		{"imageListPullJobTemplate", t.ImageListPullJobTemplate != nil},
	} {
		switch {
		case !member.set:
		case first == "":
			first = member.name
		default:
			errs = append(errs, field.Forbidden(at.Child(member.name), "there is "+first+" already"))
		}
	}
	if first == "" {
		errs = append(errs, field.Required(at, "one of jobTemplate, broadcastJobTemplate, imageListPullJobTemplate is required"))
	}
	return errs
}

// validateImageList requires jobs that end and that leave their history to the AdvancedCronJob.
func validateImageList(spec *v1beta1.AdvancedCronJobSpec, at *field.Path) field.ErrorList {
	t := spec.Template.ImageListPullJobTemplate
	if t == nil {
		return nil
	}
	var errs field.ErrorList
	if p := spec.ConcurrencyPolicy; p == v1beta1.AllowConcurrent {
		errs = append(errs, field.Invalid(at.Child("concurrencyPolicy"), p, "only Replace or Forbid with imageListPullJobTemplate"))
	}
	inner := at.Child("template", "imageListPullJobTemplate", "spec")
	errs = append(errs, listadmission.ValidateSpec(&t.Spec, inner)...)
	c := &t.Spec.CompletionPolicy
	completion := inner.Child("completionPolicy")
	if c.Type == v1beta1.CompletionNever {
		errs = append(errs, field.NotSupported(completion.Child("type"), c.Type, []v1beta1.CompletionPolicyType{v1beta1.CompletionAlways}))
	}
	if d := c.ActiveDeadlineSeconds; d != nil && *d > longestDeadline {
		errs = append(errs, field.Invalid(completion.Child("activeDeadlineSeconds"), *d, fmt.Sprintf("must be no more than %d", longestDeadline)))
	}
	if c.TTLSecondsAfterFinished != nil {
		errs = append(errs, field.Forbidden(completion.Child("ttlSecondsAfterFinished"), "use successfulJobsHistoryLimit and failedJobsHistoryLimit"))
	}
	return errs
}
