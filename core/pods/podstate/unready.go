package podstate

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// answerTime is how long a closed readiness gate waits for the kubelet. One that is there answers within a second. One
// that is silent stops no container either, and a virtual one may not know of readiness gates.
const answerTime = 2 * time.Minute

// reportTime is how long a kubelet takes at most to report a pod ready once its last readiness gate is open.
const reportTime = 10 * time.Second

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

// ReadyIn is how long the kubelet may still take to report the pod ready, because its containers are ready and its last
// readiness gate was opened a moment ago; 0 for every other pod. The report may be on its way already: a gate that is
// closed now comes too late for it.
func ReadyIn(pod *corev1.Pod, now time.Time) time.Duration {
	if pod.DeletionTimestamp != nil || isCondition(pod, corev1.PodReady, corev1.ConditionTrue) || !isCondition(pod, corev1.ContainersReady, corev1.ConditionTrue) {
		return 0
	}
	var opened time.Time
	for _, g := range pod.Spec.ReadinessGates {
		c := Condition(pod, g.ConditionType)
		if c == nil || c.Status != corev1.ConditionTrue {
			return 0
		}
		if c.LastTransitionTime.After(opened) {
			opened = c.LastTransitionTime.Time
		}
	}
	left := opened.Add(reportTime).Sub(now)
	if left > reportTime { // by another clock
		return 0
	}
	return max(left, 0)
}
