package admission

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/cover"
)

// Compare returns errors if a new budget covers the same pods as another budget of its namespace. As in OpenKruise two
// selectors overlap if they ask for the same keys and one label of each can satisfy both. Compare warns about other
// selectors that may meet.
func Compare(b, old *v1beta1.PodUnavailableBudget, others []*v1beta1.PodUnavailableBudget) (errs field.ErrorList, warnings []string) {
	if old != nil { // its target or selector never changes
		return nil, nil
	}
	for _, other := range others {
		if other.Name == b.Name || other.DeletionTimestamp != nil {
			continue
		}
		switch {
		case b.Spec.TargetReference != nil && other.Spec.TargetReference != nil:
			mine, its := b.Spec.TargetReference, other.Spec.TargetReference
			if mine.Name == its.Name && cover.KindOf(mine) == cover.KindOf(its) {
				errs = append(errs, field.Invalid(field.NewPath("spec", "targetRef"), mine.Name, "PodUnavailableBudget "+other.Name+" has the same target"))
			}
		case b.Spec.Selector != nil && other.Spec.Selector != nil:
			switch mine, its := keys(b.Spec.Selector), keys(other.Spec.Selector); {
			case !compatible(mine, its):
			case sameKeys(mine, its):
				errs = append(errs, field.Invalid(field.NewPath("spec", "selector"), metav1.FormatLabelSelector(b.Spec.Selector), "PodUnavailableBudget "+other.Name+" selects the same pods"))
			default:
				warnings = append(warnings, fmt.Sprintf("PodUnavailableBudget %s can select the same pods: a disruption of such a pod counts against both budgets and either can refuse it", other.Name))
			}
		}
	}
	return errs, warnings
}

// keys returns the requirement of each key of a selector.
func keys(s *metav1.LabelSelector) map[string]metav1.LabelSelectorRequirement {
	all := map[string]metav1.LabelSelectorRequirement{}
	for key, value := range s.MatchLabels {
		all[key] = metav1.LabelSelectorRequirement{
			Key:      key,
			Operator: metav1.LabelSelectorOpIn,
			Values:   []string{value},
		}
	}
	for _, r := range s.MatchExpressions {
		all[r.Key] = r
	}
	return all
}

func sameKeys(a, b map[string]metav1.LabelSelectorRequirement) bool {
	for key := range a {
		if _, ok := b[key]; !ok {
			return false
		}
	}
	return len(a) == len(b)
}

// compatible reports whether labels can satisfy both requirements of each common key.
func compatible(a, b map[string]metav1.LabelSelectorRequirement) bool {
	for key, mine := range a {
		if its, ok := b[key]; ok && !bothHold(mine, its) && !bothHold(its, mine) {
			return false
		}
	}
	return true
}

// bothHold reports whether a value, or no label at all, satisfies both requirements, of which the first one is looked at.
func bothHold(a, b metav1.LabelSelectorRequirement) bool {
	switch a.Operator {
	case metav1.LabelSelectorOpIn:
		return slices.ContainsFunc(a.Values, func(value string) bool { return holds(b, value) })
	case metav1.LabelSelectorOpDoesNotExist:
		return b.Operator == metav1.LabelSelectorOpDoesNotExist || b.Operator == metav1.LabelSelectorOpNotIn
	case metav1.LabelSelectorOpNotIn:
		return b.Operator == metav1.LabelSelectorOpNotIn || b.Operator == metav1.LabelSelectorOpExists
	case metav1.LabelSelectorOpExists:
		return b.Operator == metav1.LabelSelectorOpExists
	}
	return false
}

// holds reports whether a label with the value satisfies the requirement.
func holds(r metav1.LabelSelectorRequirement, value string) bool {
	switch r.Operator {
	case metav1.LabelSelectorOpIn:
		return slices.Contains(r.Values, value)
	case metav1.LabelSelectorOpNotIn:
		return !slices.Contains(r.Values, value)
	case metav1.LabelSelectorOpExists:
		return true
	case metav1.LabelSelectorOpDoesNotExist:
	}
	return false
}
