package admission

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// AddReadinessGate adds the readiness gate KruisePodReady to a pod, through which others can take it out of service.
func AddReadinessGate(pod *corev1.Pod) {
	if isMirror(pod) || podstate.HasReadinessGate(pod, contract.KruisePodReady) {
		return
	}
	pod.Spec.ReadinessGates = append(pod.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: contract.KruisePodReady})
}
