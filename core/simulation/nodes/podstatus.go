package simulate

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// report writes the status of the pod after a delay. Sometimes the status is composed before the delay, so that it is
// outdated when it is written. It never replaces a newer status.
func (w *World) report(r *podRuntime) {
	if w.chance(0.3) {
		r.composed++
		number := r.composed
		if pod := w.pod(r.key, r.uid); pod != nil {
			status := w.compose(r, pod)
			seen := w.now
			w.After(w.delay(2*time.Second), func() { w.writeStatus(r, number, seen, status) })
		}
		return
	}
	w.After(w.delay(2*time.Second), func() {
		if pod := w.pod(r.key, r.uid); pod != nil {
			r.composed++
			w.writeStatus(r, r.composed, w.now, w.compose(r, pod))
		}
	})
}

// writeStatus merges the kubelet's part of the status into the current pod, as it was seen at the moment.
func (w *World) writeStatus(r *podRuntime, number int, seen time.Time, status corev1.PodStatus) {
	pod := w.pod(r.key, r.uid)
	if pod == nil || number < r.written || w.silent[r.node] {
		return
	}
	r.written, r.seen = number, seen
	r.ready = podstate.Condition(&corev1.Pod{Status: status}, corev1.PodReady)
	kept := slices.DeleteFunc(slices.Clone(pod.Status.Conditions), func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodResizePending || c.Type == corev1.PodResizeInProgress
	})
	status.Conditions = w.withConditions(kept, status.Conditions...)
	if same(pod.Status, status) {
		return
	}
	n := *pod
	n.Status = status
	w.commit(Event{Type: Modified, Actor: KubeletActor, Object: &n, Old: pod, Subresource: "status"})
}

// compose returns the status of the running containers. Readiness follows the pod's readiness gates, too.
func (w *World) compose(r *podRuntime, pod *corev1.Pod) corev1.PodStatus {
	started := metav1.NewTime(r.started.Truncate(time.Second))
	s := corev1.PodStatus{
		Phase: corev1.PodRunning, ObservedGeneration: r.generation, StartTime: &started,
		HostIP: "192.0.2.1", PodIP: r.address, PodIPs: []corev1.PodIP{{IP: r.address}},
		QOSClass: quality(&pod.Spec), NominatedNodeName: pod.Status.NominatedNodeName,
	}
	if r.rejected {
		s.Phase, s.Reason, s.Message = r.ended, "OutOfcpu", "Pod was rejected: Node didn't have enough resource: cpu"
		s.PodIP, s.PodIPs = "", nil
		return s
	}
	allReady := true
	for _, c := range r.containers {
		if c.id == "" {
			s.Phase = corev1.PodPending
		}
		allReady = allReady && c.ready
		if podspec.IsSidecar(c.spec) {
			s.InitContainerStatuses = append(s.InitContainerStatuses, c.status())
		} else {
			s.ContainerStatuses = append(s.ContainerStatuses, c.status())
		}
	}
	if r.ended != "" {
		s.Phase = r.ended
	}
	s.Conditions = []corev1.PodCondition{
		condition("PodReadyToStartContainers", true, "", ""),
		condition(corev1.PodInitialized, true, "", ""),
		condition(corev1.PodScheduled, true, "", ""),
		condition(corev1.ContainersReady, allReady, "ContainersNotReady", "containers are not ready"),
	}
	if r.pending != "" {
		s.Conditions = append(s.Conditions, corev1.PodCondition{
			Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: r.pending, Message: "node has too little cpu",
		})
	}
	if r.failed != "" {
		s.Conditions = append(s.Conditions, corev1.PodCondition{
			Type: corev1.PodResizeInProgress, Status: corev1.ConditionTrue, Reason: corev1.PodReasonError, Message: r.failed,
		})
	}
	reason, message := "ContainersNotReady", "containers are not ready"
	ready := allReady
	for _, g := range pod.Spec.ReadinessGates {
		if ready && !isTrue(pod, g.ConditionType) {
			ready = false
			reason, message = reasonGates, fmt.Sprintf("readiness gate %q is not True", g.ConditionType)
		}
	}
	s.Conditions = append(s.Conditions, condition(corev1.PodReady, ready, reason, message))
	return s
}

// reasonGates is the reason of Ready where a readiness gate alone is in its way.
const reasonGates = "ReadinessGatesNotReady"

func condition(t corev1.PodConditionType, is bool, reason, message string) corev1.PodCondition {
	if is {
		return corev1.PodCondition{Type: t, Status: corev1.ConditionTrue}
	}
	return corev1.PodCondition{Type: t, Status: corev1.ConditionFalse, Reason: reason, Message: message}
}

func isTrue(pod *corev1.Pod, t corev1.PodConditionType) bool {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == t {
			return pod.Status.Conditions[i].Status == corev1.ConditionTrue
		}
	}
	return false
}

func addressOf(n int) string { return fmt.Sprintf("10.0.%d.%d", n/250, n%250+1) }
