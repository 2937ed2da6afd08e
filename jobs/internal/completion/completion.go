// Package completion has the rules about the end of a job that all kinds of jobs share: which policies are valid, and what
// follows once a job has ended. Objects go in, and errors, warnings or a step of a plan come out.
package completion

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// Validate returns the errors in a policy.
func Validate(c *v1beta1.CompletionPolicy, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	deadline := at.Child("activeDeadlineSeconds")
	ttl := at.Child("ttlSecondsAfterFinished")
	const onlyAlways, negative = "can only be set when the type is Always", "must be greater than or equal to 0"
	switch c.Type {
	case "", v1beta1.CompletionAlways:
		if c.ActiveDeadlineSeconds != nil && *c.ActiveDeadlineSeconds < 0 {
			errs = append(errs, field.Invalid(deadline, *c.ActiveDeadlineSeconds, negative))
		}
		if c.TTLSecondsAfterFinished != nil && *c.TTLSecondsAfterFinished < 0 {
			errs = append(errs, field.Invalid(ttl, *c.TTLSecondsAfterFinished, negative))
		}
	case v1beta1.CompletionNever:
		if c.ActiveDeadlineSeconds != nil {
			errs = append(errs, field.Forbidden(deadline, onlyAlways))
		}
		if c.TTLSecondsAfterFinished != nil {
			errs = append(errs, field.Forbidden(ttl, onlyAlways))
		}
	default:
		types := []v1beta1.CompletionPolicyType{v1beta1.CompletionAlways, v1beta1.CompletionNever}
		errs = append(errs, field.NotSupported(at.Child("type"), c.Type, types))
	}
	return errs
}

// NoEffect warns of an edit of the spec of a job that has ended. The caller makes the time to live equal: it alone still
// means something.
func NoEffect(completion *metav1.Time, before, after any) []string {
	if completion == nil || equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	return []string{"the job has ended: this change of spec has no effect"}
}

// Expire deletes the job when ttl seconds have passed since its completion. Nil stands for never.
func Expire(p *action.Plan, job action.Object, completion *metav1.Time, ttl *int32) {
	if ttl == nil || completion == nil {
		return
	}
	if left := time.Duration(*ttl)*time.Second - p.Now.Sub(completion.Time); left > 0 {
		p.RequeueWithin(left)
		return
	}
	p.Add(action.Step{Name: "expire", Actions: []action.Action{{
		Verb:    action.Delete,
		Object:  job,
		Reason:  "Expired",
		Message: "ttlSecondsAfterFinished have passed",
	}}})
}

// EditedLate reports whether the status is to follow an edit that changes nothing any more: its observed generation
// shows that the edit was seen. Statuses of OpenKruise have none.
func EditedLate(p *action.Plan, job action.Object, observed int64) bool {
	return p.Empty() && observed != 0 && observed != job.GetGeneration()
}
