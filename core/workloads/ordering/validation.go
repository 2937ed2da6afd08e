package ordering

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/api/workload"
)

// ValidatePriority returns the errors of a priorityStrategy, as Required at path; nil is valid. Of the weights, 0 is
// accepted although the words of the published API deny it.
func ValidatePriority(p *workload.UpdatePriorityStrategy, path *field.Path) field.ErrorList {
	if p == nil {
		return nil
	}
	var errs field.ErrorList
	mistake := func(text string) { errs = append(errs, field.Required(path, text)) }
	if len(p.WeightPriority) > 0 && len(p.OrderPriority) > 0 {
		mistake("only one of weightPriority and orderPriority can be used")
	}
	for i := range p.WeightPriority {
		term := &p.WeightPriority[i]
		if term.Weight < 0 || term.Weight > 100 {
			mistake("weight must be valid number in the range 1-100")
		}
		if len(term.MatchSelector.MatchLabels)+len(term.MatchSelector.MatchExpressions) == 0 {
			mistake("selector can not be empty")
		} else if _, err := metav1.LabelSelectorAsSelector(&term.MatchSelector); err != nil {
			mistake("invalid selector: " + err.Error())
		}
	}
	for _, term := range p.OrderPriority {
		if term.OrderedKey == "" {
			mistake("order key can not be empty")
		}
	}
	return errs
}

// ValidateScatter returns the errors of a scatterStrategy, as Required at path; empty is valid.
func ValidateScatter(s workload.UpdateScatterStrategy, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[workload.UpdateScatterTerm]bool{}
	for _, term := range s {
		if term.Key == "" {
			errs = append(errs, field.Required(path, "key should not be empty"))
		}
		if seen[term] {
			errs = append(errs, field.Required(path, "duplicated key "+term.Key+" and value "+term.Value))
		}
		seen[term] = true
	}
	return errs
}
