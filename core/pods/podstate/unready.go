package podstate

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// answerTime is how long a closed readiness gate waits for the kubelet. One that is there answers within a second. One
// that is silent stops no container either, and a virtual one may not know of readiness gates.
const answerTime = 2 * time.Minute

// UnreadyIn is how long to wait at most until the kubelet reports the pod not ready, because the readiness gate that the
// condition belongs to is closed, or about to be where that is nil or True; 0 when the pod is not ready. Only the kubelet
// writes Ready: when anybody else does, it sends its own last word once more.
func UnreadyIn(pod *corev1.Pod, readinessGate *corev1.PodCondition, now time.Time) time.Duration {
	ready := Condition(pod, corev1.PodReady)
	switch {
	case ready == nil || ready.Status != corev1.ConditionTrue:
		return 0
	case readinessGate == nil || readinessGate.Status == corev1.ConditionTrue:
		return answerTime
	}
	return min(max(readinessGate.LastTransitionTime.Add(answerTime).Sub(now), 0), answerTime)
}
