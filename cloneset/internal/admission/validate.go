package admission

import (
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/cloneset/internal/conversion"
	"github.com/flotilla-project/flotilla/core/inplace"
	"github.com/flotilla-project/flotilla/core/lifecycle"
)

// Facts are what the rules need to know besides the object and its predecessor.
type Facts struct {
	// Version is the version that the user sent; two messages use its words.
	Version string
	// Pods are the pods that were newly listed in podsToDelete, by name.
	Pods map[string]PodFact
	// Template is what the cluster's own validation found in a new or changed pod template. Paths start
	// at spec.template.
	Template field.ErrorList
	// InPlace says what can change on a running pod in this cluster.
	InPlace inplace.Options
	// Before and After are the old and the new pod template with the cluster's defaults. Nil means that
	// they are unknown, and the templates as written are compared.
	Before, After *corev1.PodTemplateSpec
}

// PodFact is a pod, or why there is none.
type PodFact struct {
	Pod *corev1.Pod
	Err error
}

const greaterOrEqualZero = "must be greater than or equal to 0"

const onlyTheseFields = "updates to cloneset spec for fields other than 'replicas', 'template', 'lifecycle', 'scaleStrategy', " +
	"'updateStrategy', 'minReadySeconds', 'progressDeadlineSeconds', 'volumeClaimTemplates' and 'revisionHistoryLimit' are forbidden"

func specPath() *field.Path { return field.NewPath("spec") }

// Validate judges a CloneSet. Old is the stored one, nil on create. What was wrong already and is sent
// again unchanged does not stand in the way of other changes.
func Validate(set, old *v1beta1.CloneSet, facts Facts) field.ErrorList {
	errs := validateObject(set, facts.Version)
	if old != nil {
		errs = withoutKnown(errs, validateObject(old, facts.Version))
		errs = append(errs, validateChange(set, old, facts)...)
	}
	errs = append(errs, facts.Template...)
	return append(errs, validatePodsToDelete(set, facts.Pods)...)
}

// Warnings tell the user about fields that have no effect.
func Warnings(set *v1beta1.CloneSet, version string) []string {
	strategy := set.Spec.UpdateStrategy
	if strategy.Type == v1beta1.OnDelete && strategy.RollingUpdate != nil && version == v1beta1.GroupVersion.Version {
		return []string{"rollingUpdate is ignored with type OnDelete"}
	}
	return nil
}

// validateObject holds the rules that look at one object alone.
func validateObject(set *v1beta1.CloneSet, version string) field.ErrorList {
	spec := &set.Spec
	var errs field.ErrorList
	errs = append(errs, validateNumbers(spec)...)
	errs = append(errs, validateSelector(spec)...)
	errs = append(errs, validateTemplate(&spec.Template.Spec)...)
	errs = append(errs, validateClaimNames(spec.VolumeClaimTemplates)...)
	errs = append(errs, validateScaleStrategy(&spec.ScaleStrategy)...)
	errs = append(errs, validateUpdateStrategy(spec, version)...)
	return append(errs, lifecycle.Validate(spec.Lifecycle, specPath().Child("lifecycle"))...)
}

func validateNumbers(spec *v1beta1.CloneSetSpec) field.ErrorList {
	errs := atLeastZero(spec.Replicas, specPath().Child("replicas"))
	errs = append(errs, atLeastZero(spec.RevisionHistoryLimit, specPath().Child("revisionHistoryLimit"))...)
	errs = append(errs, atLeastZero(&spec.MinReadySeconds, specPath().Child("minReadySeconds"))...)
	return append(errs, validateProgressDeadline(spec)...)
}

// validateSelector wants a selector with a term, because an empty one would select every pod.
func validateSelector(spec *v1beta1.CloneSetSpec) field.ErrorList {
	path := specPath().Child("selector")
	if spec.Selector == nil {
		return field.ErrorList{field.Required(path, "")}
	}
	errs := metavalidation.ValidateLabelSelector(spec.Selector, metavalidation.LabelSelectorValidationOptions{}, path)
	if len(spec.Selector.MatchLabels)+len(spec.Selector.MatchExpressions) == 0 {
		errs = append(errs, field.Invalid(path, spec.Selector, "empty selector is invalid for cloneset"))
	}
	if len(errs) > 0 {
		return errs
	}
	selector, err := metav1.LabelSelectorAsSelector(spec.Selector)
	if err != nil {
		return field.ErrorList{field.Invalid(path, spec.Selector, err.Error())}
	}
	if !selector.Matches(labels.Set(spec.Template.Labels)) {
		path := specPath().Child("template", "metadata", "labels")
		return field.ErrorList{field.Invalid(path, spec.Template.Labels, "`selector` does not match template `labels`")}
	}
	return nil
}

// validateTemplate holds what CloneSet adds to the rules of the cluster: its pods run until they are deleted.
func validateTemplate(pod *corev1.PodSpec) field.ErrorList {
	path := specPath().Child("template", "spec")
	var errs field.ErrorList
	if pod.RestartPolicy != "" && pod.RestartPolicy != corev1.RestartPolicyAlways {
		supported := []corev1.RestartPolicy{corev1.RestartPolicyAlways}
		errs = append(errs, field.NotSupported(path.Child("restartPolicy"), pod.RestartPolicy, supported))
	}
	if pod.ActiveDeadlineSeconds != nil {
		errs = append(errs, field.Forbidden(path.Child("activeDeadlineSeconds"), "activeDeadlineSeconds in cloneset is not Supported"))
	}
	return errs
}

func validateClaimNames(claims []corev1.PersistentVolumeClaim) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i := range claims {
		path, name := specPath().Child("volumeClaimTemplates").Index(i).Child("metadata", "name"), claims[i].Name
		switch {
		case name == "":
			errs = append(errs, field.Required(path, ""))
		case seen.Has(name):
			errs = append(errs, field.Duplicate(path, name))
		}
		seen.Insert(name)
	}
	return errs
}

func validateScaleStrategy(strategy *v1beta1.CloneSetScaleStrategy) field.ErrorList {
	path := specPath().Child("scaleStrategy")
	errs := amount(strategy.MaxUnavailable, path.Child("maxUnavailable"), "maxUnavailable")
	if twice := duplicates(strategy.PodsToDelete); len(twice) > 0 {
		errs = append(errs, field.Invalid(path.Child("podsToDelete"), strategy.PodsToDelete, fmt.Sprintf("duplicated items %v", twice)))
	}
	return errs
}

// validatePodsToDelete looks at the names that facts has pods for: those that were not listed before.
func validatePodsToDelete(set *v1beta1.CloneSet, pods map[string]PodFact) field.ErrorList {
	path := specPath().Child("scaleStrategy", "podsToDelete")
	var errs field.ErrorList
	for _, name := range sets.List(sets.KeySet(pods)) {
		switch fact := pods[name]; {
		case fact.Err != nil:
			errs = append(errs, field.Invalid(path, name, fmt.Sprintf("find pod %s failed: %v", name, fact.Err)))
		case fact.Pod.DeletionTimestamp != nil:
			errs = append(errs, field.Invalid(path, name, fmt.Sprintf("find pod %s already terminating", name)))
		case !metav1.IsControlledBy(fact.Pod, set):
			errs = append(errs, field.Invalid(path, name, fmt.Sprintf("find pod %s owner is not this CloneSet", name)))
		}
	}
	return errs
}

// validateChange holds the rules about what may become of a stored object.
func validateChange(set, old *v1beta1.CloneSet, facts Facts) field.ErrorList {
	var errs field.ErrorList
	if !equality.Semantic.DeepEqual(set.Spec.Selector, old.Spec.Selector) {
		errs = append(errs, field.Forbidden(specPath(), onlyTheseFields))
	}
	if facts.Version != v1beta1.GroupVersion.Version {
		if lost := conversion.Lost(old, set); lost != "" {
			errs = append(errs, field.Forbidden(specPath().Child("updateStrategy", "rollingUpdate", "podUpdatePolicy"), lost))
		}
	}
	return append(errs, validateInPlaceOnly(set, old, facts)...)
}

// withoutKnown leaves out what is wrong with the stored object in the same way.
func withoutKnown(errs, stored field.ErrorList) field.ErrorList {
	return slices.DeleteFunc(errs, func(err *field.Error) bool {
		return slices.ContainsFunc(stored, func(known *field.Error) bool { return reflect.DeepEqual(err, known) })
	})
}

func atLeastZero(value *int32, path *field.Path) field.ErrorList {
	if value == nil || *value >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, *value, greaterOrEqualZero)}
}

func duplicates(names []string) []string {
	var twice []string
	seen := sets.New[string]()
	for _, name := range names {
		if seen.Has(name) && !slices.Contains(twice, name) {
			twice = append(twice, name)
		}
		seen.Insert(name)
	}
	return twice
}
