package subsets

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
)

// CostStep is between the deletion costs of one subset and the next.
const CostStep = 100

// SetCost sets the deletion cost of a new pod within the limit of its subset, as the next pass would.
func SetCost(pod *corev1.Pod, spread *v1beta1.WorkloadSpread, subset int) {
	cost := CostStep * (len(spread.Spec.Subsets) - subset)
	delete(pod.Annotations, v1beta1.ReplacedCostAnnotation) // a copy of another pod's
	if before, ok := pod.Annotations[contract.PodDeletionCostAnnotation]; ok {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, v1beta1.ReplacedCostAnnotation, before)
	}
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, contract.PodDeletionCostAnnotation, strconv.Itoa(cost))
}
