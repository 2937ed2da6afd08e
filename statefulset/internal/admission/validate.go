package admission

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/controllers/podtemplate"
	coreconversion "github.com/flotilla-project/flotilla/core/operator/conversion"
	"github.com/flotilla-project/flotilla/core/pods/inplace"
	"github.com/flotilla-project/flotilla/core/pods/lifecycle"
	"github.com/flotilla-project/flotilla/core/workloads/validation"
	"github.com/flotilla-project/flotilla/statefulset/api/v1alpha1"
	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
	"github.com/flotilla-project/flotilla/statefulset/internal/conversion"
	"github.com/flotilla-project/flotilla/statefulset/internal/ordinals"
	"github.com/flotilla-project/flotilla/statefulset/internal/statefulset/plan"
)

// Facts are the facts that the rules need in addition to the object and its predecessor.
type Facts struct {
	// Version is the version that the user sent.
	Version      string
	FeatureGates FeatureGates
	// Template is the result of the cluster's validation of a new or changed pod template.
	Template podtemplate.Change
	// InPlace names the changes that a running pod allows in this cluster.
	InPlace inplace.Options
	// Classes are the storage classes of the claim templates with a changed size, by the template's name.
	Classes map[string]Class
}

// mutable are the fields that may change, in the order in which messages name them.
const mutable = "'replicas', 'ordinals', 'template', 'reserveOrdinals', 'lifecycle', 'revisionHistoryLimit', 'minReadySeconds', " +
	"'persistentVolumeClaimRetentionPolicy', 'volumeClaimTemplates', 'volumeClaimUpdateStrategy', 'scaleStrategy' and 'updateStrategy'"

func specPath() *field.Path { return field.NewPath("spec") }

// Validate validates a StatefulSet. Old is the stored one, nil on create. Errors that the stored object has already do
// not block other changes. Absent members mean their defaults.
func Validate(set, old *v1beta1.StatefulSet, facts Facts) field.ErrorList {
	errs := validateObject(set)
	if old == nil {
		errs = append(errs, validateService(set.Spec.ServiceName)...)
	} else {
		errs = validation.WithoutStored(errs, validateObject(old))
		errs = append(errs, validateChange(set, old, facts)...)
	}
	return append(errs, facts.Template.Errors...)
}

// validateObject holds the rules that look at one object alone.
func validateObject(set *v1beta1.StatefulSet) field.ErrorList {
	spec := &set.Spec
	errs := validateMetadata(set)
	errs = append(errs, validation.NonNegative(spec.Replicas, specPath().Child("replicas"))...)
	errs = append(errs, validation.NonNegative(spec.RevisionHistoryLimit, specPath().Child("revisionHistoryLimit"))...)
	errs = append(errs, validation.Selector(spec.Selector, spec.Template.Labels, specPath(), "statefulset")...)
	errs = append(errs, validation.LongRunning(&spec.Template, specPath().Child("template"), "StatefulSet")...)
	errs = append(errs, validation.ClaimTemplates(spec.VolumeClaimTemplates, specPath().Child("volumeClaimTemplates"))...)
	errs = append(errs, validateOrdinals(spec)...)
	errs = append(errs, validateClaimPolicies(spec)...)
	errs = append(errs, validateStrategies(spec)...)
	errs = append(errs, lifecycle.Validate(spec.Lifecycle, specPath().Child("lifecycle"))...)
	return append(errs, validateHooks(spec.Lifecycle)...)
}

// validateMetadata: names of pods begin with the name of the set, and pods are found by their names in DNS.
func validateMetadata(set *v1beta1.StatefulSet) field.ErrorList {
	var errs field.ErrorList
	for _, message := range apivalidation.NameIsDNSLabel(set.Name, false) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), set.Name, message))
	}
	if message := conversion.Unreadable(set); message != "" {
		path := field.NewPath("metadata", "annotations").Key(conversion.FieldsAnnotation)
		errs = append(errs, field.Invalid(path, set.Annotations[conversion.FieldsAnnotation], message))
	}
	return errs
}

func validateService(name string) field.ErrorList {
	var errs field.ErrorList
	if name == "" {
		return nil
	}
	for _, message := range utilvalidation.IsDNS1123Label(name) {
		errs = append(errs, field.Invalid(specPath().Child("serviceName"), name, message))
	}
	return errs
}

func validateOrdinals(spec *v1beta1.StatefulSetSpec) field.ErrorList {
	_, errs := ordinals.Parse(spec.ReserveOrdinals, specPath().Child("reserveOrdinals"))
	if spec.Ordinals != nil {
		errs = append(errs, validation.NonNegative(&spec.Ordinals.Start, specPath().Child("ordinals", "start"))...)
	}
	return errs
}

// validateHooks wants handlers in a hook: without any it could hold nothing.
func validateHooks(hooks *workload.Lifecycle) field.ErrorList {
	if hooks == nil {
		return nil
	}
	var errs field.ErrorList
	for _, hook := range []struct {
		name string
		is   *workload.LifecycleHook
	}{{"preDelete", hooks.PreDelete}, {"inPlaceUpdate", hooks.InPlaceUpdate}, {"preNormal", hooks.PreNormal}} {
		if hook.is != nil && len(hook.is.LabelsHandler)+len(hook.is.FinalizersHandler) == 0 {
			errs = append(errs, field.Required(specPath().Child("lifecycle", hook.name), "a hook needs labelsHandler or finalizersHandler"))
		}
	}
	return errs
}

// validateChange holds the rules about changes of a stored object.
func validateChange(set, old *v1beta1.StatefulSet, facts Facts) field.ErrorList {
	var errs field.ErrorList
	if changed := changedForGood(&set.Spec, &old.Spec); len(changed) > 0 {
		errs = append(errs, field.Forbidden(specPath(), fmt.Sprintf(
			"updates to statefulset spec for fields other than %s are forbidden, but %s changed", mutable, strings.Join(changed, " and "))))
	}
	if facts.Version == v1alpha1.GroupVersion.Version {
		for _, name := range conversion.Lost(old, set) {
			errs = append(errs, field.Forbidden(specPath().Child(name),
				coreconversion.Loss(name+", and this update would remove it", conversion.FieldsAnnotation)))
		}
	}
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.PodUpdatePolicy == v1beta1.InPlaceOnly {
		can := facts.InPlace
		can.DefaultPullPolicy = plan.DefaultPullPolicy
		errs = append(errs, podtemplate.InPlaceOnly(facts.Template, &old.Spec.Template, &set.Spec.Template, specPath(), can)...)
	}
	return append(errs, validateClaimChange(set, old, facts)...)
}

// changedForGood names the fields that changed and never may.
func changedForGood(spec, old *v1beta1.StatefulSetSpec) []string {
	var changed []string
	if !equality.Semantic.DeepEqual(spec.Selector, old.Selector) {
		changed = append(changed, "'selector'")
	}
	if spec.ServiceName != old.ServiceName {
		changed = append(changed, "'serviceName'")
	}
	if isParallel(spec) != isParallel(old) {
		changed = append(changed, "'podManagementPolicy'")
	}
	return changed
}

func isParallel(spec *v1beta1.StatefulSetSpec) bool {
	return spec.PodManagementPolicy == appsv1.ParallelPodManagement
}
