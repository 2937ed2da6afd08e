package admission

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/cloneset/api/v1alpha1"
	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/cloneset/internal/cloneset/plan"
	"github.com/flotilla-project/flotilla/cloneset/internal/conversion"
	"github.com/flotilla-project/flotilla/core/controllers/podtemplate"
	"github.com/flotilla-project/flotilla/core/pods/inplace"
	"github.com/flotilla-project/flotilla/core/pods/lifecycle"
	"github.com/flotilla-project/flotilla/core/workloads/rollout"
	"github.com/flotilla-project/flotilla/core/workloads/validation"
)

// Facts are the facts that the rules need in addition to the object and its predecessor.
type Facts struct {
	// Version is the version that the user sent; some messages use its words.
	Version string
	// Pods are the pods that were newly listed in podsToDelete, by name.
	Pods map[string]PodFact
	// Template is the result of the cluster's validation of a new or changed pod template.
	Template podtemplate.Change
	// InPlace names the changes that a running pod allows in this cluster.
	InPlace inplace.Options
}

// PodFact is a pod, or why there is none.
type PodFact struct {
	Pod *corev1.Pod
	Err error
}

const onlyTheseFields = "updates to cloneset spec for fields other than 'replicas', 'template', 'lifecycle', 'scaleStrategy', " +
	"'updateStrategy', 'minReadySeconds', 'progressDeadlineSeconds', 'volumeClaimTemplates' and 'revisionHistoryLimit' are forbidden"

func specPath() *field.Path { return field.NewPath("spec") }

// Validate validates a CloneSet. Old is the stored one, nil on create. Errors that the stored object has already do not
// block other changes.
func Validate(set, old *v1beta1.CloneSet, facts Facts) field.ErrorList {
	errs := validateObject(set, facts.Version)
	if old != nil {
		errs = validation.WithoutStored(errs, validateObject(old, facts.Version))
		errs = append(errs, validateChange(set, old, facts)...)
	}
	errs = append(errs, facts.Template.Errors...)
	return append(errs, validatePodsToDelete(set, facts.Pods, facts.Version)...)
}

// Warnings warn the user about fields that have no effect, and about pods that cannot be created again. Old is the
// stored object, nil on create.
func Warnings(set, old *v1beta1.CloneSet, version string) []string {
	switch strategy := set.Spec.UpdateStrategy; {
	case strategy.Type == v1beta1.OnDelete && strategy.RollingUpdate != nil && version == v1beta1.GroupVersion.Version:
		return []string{"rollingUpdate is ignored with type OnDelete"}
	case old != nil && strategy.Type != v1beta1.OnDelete && strategy.RollingUpdate != nil && rollout.KeepsPods(strategy.RollingUpdate.Partition):
		templates := specPath().Child("volumeClaimTemplates")
		return validation.RemovedClaimTemplates(set.Spec.VolumeClaimTemplates, old.Spec.VolumeClaimTemplates, &old.Spec.Template, templates)
	}
	return nil
}

// validateObject holds the rules that look at one object alone.
func validateObject(set *v1beta1.CloneSet, version string) field.ErrorList {
	spec := &set.Spec
	var errs field.ErrorList
	errs = append(errs, validateNumbers(spec)...)
	errs = append(errs, validation.Selector(spec.Selector, spec.Template.Labels, specPath(), "cloneset")...)
	errs = append(errs, validation.LongRunning(&spec.Template, specPath().Child("template"), "cloneset")...)
	errs = append(errs, validation.ClaimTemplates(spec.VolumeClaimTemplates, specPath().Child("volumeClaimTemplates"))...)
	errs = append(errs, validateScaleStrategy(&spec.ScaleStrategy)...)
	errs = append(errs, validateUpdateStrategy(spec, version)...)
	return append(errs, lifecycle.Validate(spec.Lifecycle, specPath().Child("lifecycle"))...)
}

func validateNumbers(spec *v1beta1.CloneSetSpec) field.ErrorList {
	errs := validation.NonNegative(spec.Replicas, specPath().Child("replicas"))
	errs = append(errs, validation.NonNegative(spec.RevisionHistoryLimit, specPath().Child("revisionHistoryLimit"))...)
	errs = append(errs, validation.NonNegative(&spec.MinReadySeconds, specPath().Child("minReadySeconds"))...)
	return append(errs, validateProgressDeadline(spec)...)
}

func validateScaleStrategy(strategy *v1beta1.CloneSetScaleStrategy) field.ErrorList {
	path := specPath().Child("scaleStrategy")
	errs := validation.Amount(strategy.MaxUnavailable, path.Child("maxUnavailable"))
	if twice := validation.Duplicates(strategy.PodsToDelete); len(twice) > 0 {
		errs = append(errs, field.Invalid(path.Child("podsToDelete"), strategy.PodsToDelete, fmt.Sprintf("duplicated items %v", twice)))
	}
	return errs
}

// validatePodsToDelete looks at the names that facts has pods for: those that were not listed before.
func validatePodsToDelete(set *v1beta1.CloneSet, pods map[string]PodFact, version string) field.ErrorList {
	path := specPath().Child("scaleStrategy", "podsToDelete")
	words := wordsOf(version)
	var errs field.ErrorList
	for _, name := range sets.List(sets.KeySet(pods)) {
		switch fact := pods[name]; {
		case apierrors.IsNotFound(fact.Err) && version != v1alpha1.GroupVersion.Version:
			errs = append(errs, field.Invalid(path, name, fmt.Sprintf("pod %s not found", name)))
		case fact.Err != nil:
			errs = append(errs, field.Invalid(path, name, fmt.Sprintf(words.unreadable, name, fact.Err)))
		case fact.Pod.DeletionTimestamp != nil:
			errs = append(errs, field.Invalid(path, name, fmt.Sprintf(words.terminating, name)))
		case !metav1.IsControlledBy(fact.Pod, set):
			errs = append(errs, field.Invalid(path, name, fmt.Sprintf(words.foreign, name)))
		}
	}
	return errs
}

// validateChange holds the rules about changes of a stored object.
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
	if isInPlaceOnly(set) {
		can := facts.InPlace
		can.DefaultPullPolicy = plan.DefaultPullPolicy
		errs = append(errs, podtemplate.InPlaceOnly(facts.Template, &old.Spec.Template, &set.Spec.Template, specPath(), can)...)
	}
	return errs
}

func isInPlaceOnly(set *v1beta1.CloneSet) bool {
	strategy := set.Spec.UpdateStrategy
	return strategy.Type != v1beta1.OnDelete && strategy.RollingUpdate != nil && strategy.RollingUpdate.PodUpdatePolicy == v1beta1.InPlaceOnly
}
