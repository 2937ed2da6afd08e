package cover

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
)

// Mark returns the name of the budget in a pod's annotations, empty if there is none. Webhooks are called for pods that
// have one.
func Mark(pod metav1.Object) string {
	annotations := pod.GetAnnotations()
	return cmp.Or(annotations[v1beta1.RelatedAnnotation], annotations[v1beta1.LegacyRelatedAnnotation])
}
