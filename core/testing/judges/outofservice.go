package judges

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/inplace/record"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/nodes"
)

// outOfService judges that pods which leave service stay out of it.
type outOfService struct {
	closed   map[types.UID]time.Time // when the readiness gates became other than True
	answered map[types.UID]bool      // the kubelet has reported the pod not ready because of that
	since    map[types.UID]time.Time // when condition Ready became other than True
}

func newOutOfService() *outOfService {
	return &outOfService{
		closed:   map[types.UID]time.Time{},
		answered: map[types.UID]bool{},
		since:    map[types.UID]time.Time{},
	}
}

// watch requires that a pod which was reported not ready because of a readiness gate is not reported ready before the
// readiness gates are True.
func (o *outOfService) watch(w *World, e cluster.Event, pod *corev1.Pod) {
	ready := podstate.Condition(pod, corev1.PodReady)
	closed := podstate.HeldByUpdate(pod) || IsFalse(pod, contract.KruisePodReady)
	if ready == nil {
		return
	}
	if closed && o.closed[pod.UID].IsZero() {
		o.closed[pod.UID] = w.Now()
	}
	switch {
	case !closed:
		delete(o.answered, pod.UID)
		delete(o.closed, pod.UID)
	case ready.Status == corev1.ConditionTrue && o.answered[pod.UID]:
		w.Violate("pod %s is reported ready, though it was taken out of service", pod.Name)
	case ready.Reason == nodes.ReasonGates && o.isAnswer(w, e, pod):
		o.answered[pod.UID] = true
	}
	if ready.Status == corev1.ConditionTrue {
		delete(o.since, pod.UID)
	} else if o.since[pod.UID].IsZero() {
		o.since[pod.UID] = w.Now()
	}
}

// isAnswer reports whether somebody else than the kubelet wrote, who is to know, or a kubelet that has seen the readiness
// gates closed.
func (o *outOfService) isAnswer(w *World, e cluster.Event, pod *corev1.Pod) bool {
	old, _ := e.Old.(*corev1.Pod)
	if e.Actor != cluster.KubeletActor {
		return old != nil && cluster.IsTrue(old, corev1.PodReady)
	}
	return w.Runs(pod.UID) && w.Seen(pod.UID).After(o.closed[pod.UID])
}

// stops requires of a write that stops a container of the pod that its kubelet has reported it not ready for the whole of
// its grace period. A kubelet that is silent for two minutes is not waited for.
func (o *outOfService) stops(w *World, old, pod *corev1.Pod) {
	gate := podstate.Condition(old, contract.InPlaceUpdateReady)
	if gate == nil || w.Now().Sub(gate.LastTransitionTime.Time) >= 2*time.Minute {
		return
	}
	var planned record.Grace
	if text := old.Annotations[contract.InPlaceUpdateGraceAnnotation]; text != "" && json.Unmarshal([]byte(text), &planned) != nil {
		return
	}
	since, out := o.since[old.UID]
	grace := w.gracePeriod(planned, pod)
	switch {
	case !out && cluster.IsTrue(old, corev1.PodReady):
		w.Violate("a container of pod %s is stopped while its kubelet reports it ready", old.Name)
	case out && w.Now().Sub(since) < grace-time.Second: // moments are written down in whole seconds
		w.Violate("a container of pod %s is stopped %s after the pod is not ready, its grace period is %s", old.Name, w.Now().Sub(since), grace)
	}
}

// gracePeriod is how long the pod is not ready before a write stops one of its containers. An update that begins with the
// write follows its workload, as the operator has last seen it, and not the plan of an earlier update, which it drops.
func (w *World) gracePeriod(planned record.Grace, pod *corev1.Pod) time.Duration {
	seconds := int64(planned.GraceSeconds)
	if planned.Revision != "" && podstate.ShortHash(pod.Labels[contract.RevisionLabel]) != podstate.ShortHash(planned.Revision) {
		seconds = w.gracePeriodSeconds(pod)
	}
	return time.Duration(seconds) * time.Second
}

// gracePeriodSeconds is the field of the pod's workload in the operator's last view; 0 where the workload has none.
func (w *World) gracePeriodSeconds(pod *corev1.Pod) int64 {
	ref := metav1.GetControllerOf(pod)
	if ref == nil {
		return 0
	}
	seen := w.View(func(kind string) int {
		if n, looked := w.seen[kind]; looked {
			return len(w.Events(kind)) - n
		}
		return 0
	})
	workload := seen.Stored(ref.Kind, types.NamespacedName{Namespace: pod.Namespace, Name: ref.Name})
	if workload == nil {
		return 0
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(workload)
	if err != nil {
		return 0
	}
	seconds, _, _ := unstructured.NestedInt64(fields, "spec", "updateStrategy", "rollingUpdate", "inPlaceUpdateStrategy", "gracePeriodSeconds")
	return seconds
}

// IsFalse reports whether the pod has the readiness gate, and its condition is False.
func IsFalse(pod *corev1.Pod, t corev1.PodConditionType) bool {
	c := podstate.Condition(pod, t)
	return c != nil && c.Status == corev1.ConditionFalse && podstate.HasReadinessGate(pod, t)
}
