package admission

import (
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	apimachineryvalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/pods/imageref"
	"github.com/flotilla-project/flotilla/core/workloads/validation"

	nodeimage "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/completion"
)

// Validate returns the errors in a job. Old is the stored one, nil on create. A spec that is stored already does not
// prevent other changes. A default that it lacks is no change.
func Validate(job, old *v1beta1.ImagePullJob) field.ErrorList {
	if old != nil && equality.Semantic.DeepEqual(defaulted(job), defaulted(old)) {
		return nil
	}
	at := field.NewPath("spec")
	errs := validateSpec(&job.Spec, at)
	if old == nil {
		return errs
	}
	stored := defaulted(old)
	errs = validation.WithoutStored(errs, validateSpec(&stored, at))
	if completedAndChanged(job, old) {
		errs = append(errs, field.Forbidden(at, "the job has completed; create a new one"))
	}
	return errs
}

func validateSpec(spec *v1beta1.ImagePullJobSpec, at *field.Path) field.ErrorList {
	return append(ValidateImage(spec.Image, at.Child("image")), ValidateTemplate(&spec.ImagePullJobTemplate, at)...)
}

// SecretsChanged reports whether an update changes the pull secrets, which never change: OpenKruise answers that with
// another status than other errors.
func SecretsChanged(job, old *v1beta1.ImagePullJob) bool {
	return old != nil && !equality.Semantic.DeepEqual(job.Spec.PullSecrets, old.Spec.PullSecrets)
}

// completedAndChanged reports whether anything but the time to live of a completed job changes.
func completedAndChanged(job, old *v1beta1.ImagePullJob) bool {
	if old.Status.CompletionTime == nil {
		return false
	}
	now, before := defaulted(job), defaulted(old)
	now.CompletionPolicy.TTLSecondsAfterFinished = before.CompletionPolicy.TTLSecondsAfterFinished
	return !equality.Semantic.DeepEqual(now, before)
}

func defaulted(job *v1beta1.ImagePullJob) v1beta1.ImagePullJobSpec {
	out := job.DeepCopy()
	Default(out)
	return out.Spec
}

// ValidateImage returns the errors in the reference of an image.
func ValidateImage(image string, at *field.Path) field.ErrorList {
	if image == "" {
		return field.ErrorList{field.Required(at, "name an image")}
	}
	if _, err := imageref.Parse(image); err != nil {
		return field.ErrorList{field.Invalid(at, image, err.Error())}
	}
	return nil
}

// ValidateTemplate returns the errors in where and how images are pulled.
func ValidateTemplate(t *v1beta1.ImagePullJobTemplate, at *field.Path) field.ErrorList {
	errs := validateSelectors(t, at)
	for i, name := range t.PullSecrets {
		for _, text := range apimachineryvalidation.NameIsDNSSubdomain(name, false) {
			errs = append(errs, field.Invalid(at.Child("pullSecrets").Index(i), name, text))
		}
	}
	errs = append(errs, validateSizes(t, at)...)
	errs = append(errs, validateParallelism(t.Parallelism, at.Child("parallelism"))...)
	timeout := int32(v1beta1.DefaultPullTimeoutSeconds)
	if t.PullPolicy != nil {
		if seconds := t.PullPolicy.TimeoutSeconds; seconds != nil {
			timeout = *seconds
			if timeout < 1 {
				errs = append(errs, field.Invalid(at.Child("pullPolicy", "timeoutSeconds"), timeout, "must be greater than or equal to 1"))
			}
		}
		if limit := t.PullPolicy.BackoffLimit; limit != nil && *limit < 0 {
			errs = append(errs, field.Invalid(at.Child("pullPolicy", "backoffLimit"), *limit, "must be greater than or equal to 0"))
		}
	}
	errs = append(errs, validateCompletion(&t.CompletionPolicy, timeout, at.Child("completionPolicy"))...)
	if p := t.ImagePullPolicy; p != "" && p != v1beta1.PullAlways && p != v1beta1.PullIfNotPresent {
		errs = append(errs, field.NotSupported(at.Child("imagePullPolicy"), p, []v1beta1.ImagePullPolicy{v1beta1.PullAlways, v1beta1.PullIfNotPresent}))
	}
	return errs
}

// validateSizes bounds the data that a job writes into the NodeImage of every node.
func validateSizes(t *v1beta1.ImagePullJobTemplate, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if n := len(t.PullSecrets); n > nodeimage.MaxSecretsPerImage {
		errs = append(errs, field.TooMany(at.Child("pullSecrets"), n, nodeimage.MaxSecretsPerImage))
	}
	if s := t.SandboxConfig; s != nil {
		if size := nodeimage.SandboxBytes(s.Labels, s.Annotations); size > nodeimage.MaxSandboxBytes {
			errs = append(errs, &field.Error{
				Type:     field.ErrorTypeTooLong,
				Field:    at.Child("sandboxConfig").String(),
				BadValue: size,
				Detail:   fmt.Sprintf("%d bytes of labels and annotations, at most %d", size, nodeimage.MaxSandboxBytes),
			})
		}
	}
	return errs
}

func validateSelectors(t *v1beta1.ImagePullJobTemplate, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s, sel := t.Selector, at.Child("selector"); s != nil {
		if s.Names != nil && (len(s.MatchLabels) > 0 || len(s.MatchExpressions) > 0) {
			errs = append(errs, field.Invalid(sel, s.Names, "names and a label selector are mutually exclusive"))
		}
		seen := map[string]bool{}
		for i, name := range s.Names {
			if seen[name] {
				errs = append(errs, field.Duplicate(sel.Child("names").Index(i), name))
			}
			seen[name] = true
		}
		errs = append(errs, validateLabels(&s.LabelSelector, sel)...)
	}
	if t.PodSelector != nil {
		if t.Selector != nil {
			errs = append(errs, field.Forbidden(at.Child("podSelector"), "podSelector and selector are mutually exclusive"))
		}
		errs = append(errs, validateLabels(t.PodSelector, at.Child("podSelector"))...)
	}
	return errs
}

func validateLabels(s *metav1.LabelSelector, at *field.Path) field.ErrorList {
	return metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, at)
}

// validateParallelism keeps OpenKruise's words, which clients match.
func validateParallelism(p *intstr.IntOrString, at *field.Path) field.ErrorList {
	if p == nil {
		return nil
	}
	n := int(p.IntVal)
	if p.Type == intstr.String {
		if len(p.StrVal) > 0 && p.StrVal[len(p.StrVal)-1] == '%' {
			return field.ErrorList{field.Invalid(at, p.StrVal, "parallelism does not support percentage value")}
		}
		var err error
		if n, err = strconv.Atoi(p.StrVal); err != nil {
			return field.ErrorList{field.Invalid(at, p.StrVal, "parallelism must be a valid integer")}
		}
	}
	if n < 0 {
		return field.ErrorList{field.Invalid(at, p.String(), "parallelism must be non-negative")}
	}
	return nil
}

// validateCompletion requires time for one attempt.
func validateCompletion(c *v1beta1.CompletionPolicy, timeout int32, at *field.Path) field.ErrorList {
	errs := completion.Validate(c, at)
	always := c.Type == "" || c.Type == v1beta1.CompletionAlways
	if d := c.ActiveDeadlineSeconds; always && d != nil && *d >= 0 && *d < int64(timeout) {
		errs = append(errs, field.Invalid(at.Child("activeDeadlineSeconds"), *d, fmt.Sprintf("must not be less than pullPolicy.timeoutSeconds (%d)", timeout)))
	}
	return errs
}
