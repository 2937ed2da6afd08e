package podmarks

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// HasReadinessGate reports whether the pod has our readiness gate, and no workload of our own group, which sets the conditions
// of its readiness gates itself.
func HasReadinessGate(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	ours := owner != nil && strings.HasPrefix(owner.APIVersion, contract.AppsGroup+"/")
	return !ours && podstate.HasReadinessGate(pod, contract.KruisePodReady)
}

// IsRelevant reports whether a plan may have anything to do for the pod, now or later.
func IsRelevant(pod *corev1.Pod) bool { return HasBarrier(pod) || HasReadinessGate(pod) }
