package nodes

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
)

// report writes the status of the pod after a delay. Sometimes the status is composed before the delay, so that it is
// outdated when it is written. It never replaces a newer status.
func (w *World) report(r *podRuntime) {
	if w.Chance(0.3) {
		r.composed++
		number := r.composed
		if pod := w.Pod(r.key, r.uid); pod != nil {
			status := w.compose(r, pod)
			seen := w.Now()
			w.After(w.Takes(cluster.Reporting, 2*time.Second), func() { w.writeStatus(r, number, seen, status) })
		}
		return
	}
	w.After(w.Takes(cluster.Reporting, 2*time.Second), func() {
		if pod := w.Pod(r.key, r.uid); pod != nil {
			r.composed++
			w.writeStatus(r, r.composed, w.Now(), w.compose(r, pod))
		}
	})
}

// writeStatus merges the kubelet's part of the status into the current pod, as it was seen at the moment.
func (w *World) writeStatus(r *podRuntime, number int, seen time.Time, status corev1.PodStatus) {
	pod := w.Pod(r.key, r.uid)
	if pod == nil || number < r.written || w.silent[r.node] {
		return
	}
	r.written, r.seen = number, seen
	r.ready = podstate.Condition(&corev1.Pod{Status: status}, corev1.PodReady)
	kept := slices.DeleteFunc(slices.Clone(pod.Status.Conditions), func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodResizePending || c.Type == corev1.PodResizeInProgress
	})
	status.Conditions = w.withConditions(kept, status.Conditions...)
	if cluster.Same(pod.Status, status) {
		return
	}
	n := *pod
	n.Status = status
	w.Commit(cluster.Event{
		Type:        cluster.Modified,
		Actor:       cluster.KubeletActor,
		Object:      &n,
		Old:         pod,
		Subresource: "status",
	})
}

// compose returns the status of the running containers. Readiness follows the pod's readiness gates, too.
func (w *World) compose(r *podRuntime, pod *corev1.Pod) corev1.PodStatus {
	started := metav1.NewTime(r.started.Truncate(time.Second))
	s := corev1.PodStatus{
		Phase:              corev1.PodRunning,
		ObservedGeneration: r.generation,
		StartTime:          &started,
		HostIP:             cmp.Or(pod.Status.HostIP, "192.0.2.1"),
		PodIP:              r.address,
		PodIPs:             []corev1.PodIP{{IP: r.address}},
		QOSClass:           cluster.Quality(&pod.Spec),
		NominatedNodeName:  pod.Status.NominatedNodeName,
	}
	if r.rejected {
		s.Phase = r.ended
		s.Reason = "OutOfcpu"
		s.Message = "Pod was rejected: Node didn't have enough resource: cpu"
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
	s.Conditions = append(s.Conditions, r.resizing()...)
	reason, message := "ContainersNotReady", "containers are not ready"
	ready := allReady
	for _, g := range pod.Spec.ReadinessGates {
		if ready && !cluster.IsTrue(pod, g.ConditionType) {
			ready = false
			reason = ReasonGates
			message = fmt.Sprintf("readiness gate %q is not True", g.ConditionType)
		}
	}
	s.Conditions = append(s.Conditions, condition(corev1.PodReady, ready, reason, message))
	return s
}

// resizing are the conditions of a resize that is put off or has failed.
func (r *podRuntime) resizing() (conditions []corev1.PodCondition) {
	if r.pending != "" {
		conditions = append(conditions, corev1.PodCondition{
			Type:    corev1.PodResizePending,
			Status:  corev1.ConditionTrue,
			Reason:  r.pending,
			Message: "node has too little cpu",
		})
	}
	if r.failed != "" {
		conditions = append(conditions, corev1.PodCondition{
			Type:    corev1.PodResizeInProgress,
			Status:  corev1.ConditionTrue,
			Reason:  corev1.PodReasonError,
			Message: r.failed,
		})
	}
	return conditions
}

// ReasonGates is the reason of Ready where a readiness gate alone is in its way.
const ReasonGates = "ReadinessGatesNotReady"

func condition(t corev1.PodConditionType, is bool, reason, message string) corev1.PodCondition {
	if is {
		return corev1.PodCondition{Type: t, Status: corev1.ConditionTrue}
	}
	return corev1.PodCondition{
		Type:    t,
		Status:  corev1.ConditionFalse,
		Reason:  reason,
		Message: message,
	}
}

func addressOf(n int) string { return fmt.Sprintf("10.0.%d.%d", n/250, n%250+1) }

// repeatReady sends what the kubelet has last reported of Ready once more, if somebody else has written another word and
// no newer status comes before.
func (w *World) repeatReady(pod *corev1.Pod) {
	r := w.runtimes[pod.UID]
	now := podstate.Condition(pod, corev1.PodReady)
	if r == nil || r.ready == nil || now != nil && now.Status == r.ready.Status && now.Message == r.ready.Message {
		return
	}
	written, repeated := r.written, *r.ready
	w.After(w.Takes(cluster.Reporting, 2*time.Second), func() {
		pod := w.Pod(r.key, r.uid)
		if pod == nil || r.written != written || w.silent[r.node] {
			return
		}
		n := *pod
		n.Status.Conditions = w.withConditions(pod.Status.Conditions, repeated)
		if !cluster.Same(pod.Status, n.Status) {
			w.Commit(cluster.Event{
				Type:        cluster.Modified,
				Actor:       cluster.KubeletActor,
				Object:      &n,
				Old:         pod,
				Subresource: "status",
			})
		}
	})
}

// withConditions returns have with the conditions put in; a transition time moves only with the status.
func (w *World) withConditions(have []corev1.PodCondition, put ...corev1.PodCondition) []corev1.PodCondition {
	all := slices.Clone(have)
	for _, c := range put {
		c.LastTransitionTime = w.Stamp()
		i := slices.IndexFunc(all, func(o corev1.PodCondition) bool { return o.Type == c.Type })
		if i < 0 {
			all = append(all, c)
			continue
		}
		if all[i].Status == c.Status {
			c.LastTransitionTime = all[i].LastTransitionTime
		}
		all[i] = c
	}
	return all
}
