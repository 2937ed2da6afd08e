package nodes

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/simulation/cluster"
)

// FailNode stops the kubelet of a node, such as "node-0": its pods go on running, but their status is not reported and
// no deletion ends. The pods are marked not ready, as the node controller does.
func (w *World) FailNode(name string) {
	w.silent[name] = true
	w.Tell(cluster.NodeActor, "%s fails", name)
	w.setReady(name, corev1.ConditionUnknown)
	for _, pod := range w.Pods() {
		if pod.Spec.NodeName != name || !cluster.IsTrue(pod, corev1.PodReady) {
			continue
		}
		n := *pod
		n.Status.Conditions = w.withConditions(pod.Status.Conditions, corev1.PodCondition{
			Type:   corev1.PodReady,
			Status: corev1.ConditionFalse,
			Reason: "NodeNotReady",
		})
		w.Commit(cluster.Event{
			Type:        cluster.Modified,
			Actor:       cluster.NodeActor,
			Object:      &n,
			Old:         pod,
			Subresource: "status",
		})
	}
}

// RecoverNode starts the kubelet of the node again.
func (w *World) RecoverNode(name string) {
	if !w.HasNode(name) { // it was removed meanwhile
		return
	}
	delete(w.silent, name)
	w.Tell(cluster.NodeActor, "%s recovers", name)
	w.setReady(name, corev1.ConditionTrue)
	for _, pod := range w.Pods() {
		if pod.Spec.NodeName == name {
			w.After(w.Takes(cluster.Noticing, time.Second), func() { w.sync(cluster.KeyOf(pod), pod.UID) })
		}
	}
}

// RejectPods lets the kubelet of the node reject the pods that come until a moment. They have failed before any container
// ran, and stay until somebody deletes them.
func (w *World) RejectPods(name string, until time.Time) { w.full[name] = until }

// Evict lets the kubelet of the pod end its containers for want of memory. The pod has failed then and stays until
// somebody deletes it. It does nothing to a pod that is ending, that has not started or whose node is silent.
func (w *World) Evict(pod *corev1.Pod) {
	if r := w.runtimes[pod.UID]; r != nil && !r.ending && !w.silent[r.node] {
		w.Tell(cluster.KubeletActor, "evicts pod %s", pod.Name)
		r.ending = true
		w.stop(r, corev1.PodFailed)
	}
}
