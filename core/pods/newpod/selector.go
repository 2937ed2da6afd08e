package newpod

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
)

// CheckSelector returns an error if the selector asks for a control label, which no new pod has from its template: every
// pod that is created would be released at once. Admission refuses such a selector; a stored workload may have one.
func CheckSelector(s *metav1.LabelSelector) error {
	if s == nil {
		return nil
	}
	for _, key := range contract.ControlLabels() {
		_, equal := s.MatchLabels[key]
		if equal || slices.ContainsFunc(s.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool {
			return r.Key == key && (r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpExists)
		}) {
			return fmt.Errorf("the selector requires label %s, which Flotilla sets on single pods: new pods lack it, "+
				"so no pod is created. Create the workload again without it", key)
		}
	}
	return nil
}
