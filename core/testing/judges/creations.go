package judges

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
)

// HookActor is a user's controller that answers lifecycle hooks. Its answers are no reason to delete a pod.
const HookActor = "hook"

// creations are the pods that the operator has made for a workload since the last change by another actor.
type creations struct {
	made       map[types.UID]int64 // the generation of the workload for which a pod was made
	generation int64               // the last generation for which a pod was taken away again
	taken      int                 // and how many were
	meddled    map[string]int      // the number of events of a kind at the last change by somebody else
}

// CheckCreations requires that the operator does not delete a pod that it made for the same generation of its workload,
// unless the pod has failed or something has changed that it had not seen when it made the pod: it would make another
// pod instead, and so on without end. As many pods as spare returns, such as maxSurge, may be deleted; nil means none.
func (w *World) CheckCreations(workload action.Object, spare func(*cluster.View) int) {
	c := creations{made: map[types.UID]int64{}, meddled: map[string]int{}}
	for _, kind := range w.Kinds() { // a cache that fills may not show yet what was there from the start
		c.meddled[kind] = len(w.Events(kind))
	}
	w.OnEvent(func(e cluster.Event) {
		pod, ok := e.Object.(*corev1.Pod)
		switch {
		case isForeign(e.Actor), ok && e.Old != nil && cluster.ControllerOf(e.Old) != cluster.ControllerOf(pod), // or what one did is seen now
			ok && fails(e, pod):
			clear(c.made)
			c.meddled[e.Kind] = len(w.Events(e.Kind))
		case !ok || e.Actor != cluster.OperatorActor || cluster.ControllerOf(pod) != workload.GetUID():
		case e.Type == cluster.Added && c.seen(w):
			c.made[pod.UID] = w.knownGeneration(workload)
		case takesAway(e, pod):
			c.check(w, pod, w.knownGeneration(workload), spare)
		}
	})
}

// knownGeneration returns the generation of the object in the operator's last view.
func (w *World) knownGeneration(o action.Object) int64 {
	if known := w.known().Object(cluster.KindOf(o), cluster.KeyOf(o)); known != nil {
		return known.GetGeneration()
	}
	return 0
}

// seen reports whether the operator's last view showed all changes by other actors.
func (c *creations) seen(w *World) bool {
	for kind, events := range c.meddled {
		if seen, looked := w.seen[kind]; looked && seen < events {
			return false
		}
	}
	return true
}

func (c *creations) check(w *World, pod *corev1.Pod, generation int64, spare func(*cluster.View) int) {
	made, ours := c.made[pod.UID]
	delete(c.made, pod.UID)
	if !ours || made != generation || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		return
	}
	if c.generation != generation {
		c.generation, c.taken = generation, 0
	}
	c.taken++
	if spare != nil && c.taken <= spare(w.View(nil)) {
		return
	}
	w.Violate("pod %s was made for generation %d and is taken away for it", pod.Name, generation)
}

// fails reports whether the pod ends in failure, as one that its node evicts. What a set wants can depend on that: a
// DaemonSet counts a node that gets no new pod only as long as its pod is there.
func fails(e cluster.Event, pod *corev1.Pod) bool {
	old, _ := e.Old.(*corev1.Pod)
	return old != nil && old.Status.Phase != corev1.PodFailed && pod.Status.Phase == corev1.PodFailed
}

// takesAway reports whether the operator deletes the pod, or has its preDelete hook release it.
func takesAway(e cluster.Event, pod *corev1.Pod) bool {
	old, _ := e.Old.(*corev1.Pod)
	if old == nil || old.DeletionTimestamp != nil {
		return false
	}
	going := func(o *corev1.Pod) bool {
		return o.Labels[contract.LifecycleStateLabel] == contract.LifecyclePreparingDelete
	}
	return e.Type == cluster.Deleted || pod.DeletionTimestamp != nil || going(pod) && !going(old)
}

// isForeign reports whether the actor is neither the operator nor part of the cluster.
func isForeign(actor string) bool {
	switch actor {
	case cluster.OperatorActor, cluster.KubeletActor, cluster.SchedulerActor, cluster.CollectorActor, cluster.BinderActor, cluster.NodeActor, HookActor:
		return false
	}
	return true
}
