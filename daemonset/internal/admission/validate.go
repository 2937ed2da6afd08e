package admission

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/controllers/podtemplate"
	"github.com/flotilla-project/flotilla/core/pods/lifecycle"
	"github.com/flotilla-project/flotilla/core/workloads/validation"
	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

// Facts are the facts that the rules need in addition to the object and its predecessor.
type Facts struct {
	// Version is the version that the user sent.
	Version string
	// Template is the result of the cluster's validation of a new or changed pod template.
	Template podtemplate.Change
}

// mutable are the fields that may change, in the order in which messages name them.
const mutable = "'burstReplicas', 'template', 'lifecycle', 'updateStrategy', 'scaleStrategy', 'minReadySeconds' and 'revisionHistoryLimit'"

func specPath() *field.Path { return field.NewPath("spec") }

// Validate validates a DaemonSet. Old is the stored one, nil on create. Errors that the stored object has already do
// not block other changes.
func Validate(set, old *v1beta1.DaemonSet, facts Facts) field.ErrorList {
	errs := validateObject(set, facts.Version)
	if old != nil {
		errs = validation.WithoutStored(errs, validateObject(old, facts.Version))
		errs = append(errs, validateChange(set, old)...)
	}
	return append(errs, facts.Template.Errors...)
}

// validateObject holds the rules that look at one object alone.
func validateObject(set *v1beta1.DaemonSet, version string) field.ErrorList {
	spec := &set.Spec
	errs := validation.Selector(spec.Selector, spec.Template.Labels, specPath(), "daemonset")
	errs = append(errs, validation.LongRunning(&spec.Template, specPath().Child("template"), "DaemonSet")...)
	errs = append(errs, validation.NonNegative(&spec.MinReadySeconds, specPath().Child("minReadySeconds"))...)
	errs = append(errs, validation.NonNegative(spec.RevisionHistoryLimit, specPath().Child("revisionHistoryLimit"))...)
	errs = append(errs, validateBurst(spec.BurstReplicas, specPath().Child("burstReplicas"))...)
	errs = append(errs, validateUpdateStrategy(&spec.UpdateStrategy, version, specPath().Child("updateStrategy"))...)
	return append(errs, validateLifecycle(spec.Lifecycle, specPath().Child("lifecycle"))...)
}

func validateLifecycle(hooks *workload.Lifecycle, path *field.Path) field.ErrorList {
	errs := lifecycle.Validate(hooks, path)
	if hooks != nil && hooks.InPlaceUpdate != nil {
		errs = append(errs, field.Forbidden(path.Child("inPlaceUpdate"), "inPlaceUpdate hook of DaemonSet is not supported yet"))
	}
	return errs
}

// validateChange holds the rules about changes of a stored object.
func validateChange(set, old *v1beta1.DaemonSet) field.ErrorList {
	if equality.Semantic.DeepEqual(set.Spec.Selector, old.Spec.Selector) {
		return nil
	}
	return field.ErrorList{field.Forbidden(specPath(), fmt.Sprintf(
		"updates to daemonset spec for fields other than %s are forbidden, but 'selector' changed", mutable))}
}
