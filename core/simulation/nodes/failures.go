package simulate

import (
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// FailNode stops the kubelet of a node, such as "node-0": its pods go on running, but their status is not reported and
// no deletion ends. The pods are marked not ready, as the node controller does.
func (w *World) FailNode(name string) {
	w.silent[name] = true
	w.Tell(NodeActor, "%s fails", name)
	w.setReady(name, corev1.ConditionUnknown)
	for _, pod := range w.Pods() {
		if pod.Spec.NodeName != name || !isTrue(pod, corev1.PodReady) {
			continue
		}
		n := *pod
		n.Status.Conditions = w.withConditions(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "NodeNotReady",
		})
		w.commit(Event{Type: Modified, Actor: NodeActor, Object: &n, Old: pod, Subresource: "status"})
	}
}

// RecoverNode starts the kubelet of the node again.
func (w *World) RecoverNode(name string) {
	if !w.HasNode(name) { // it was removed meanwhile
		return
	}
	delete(w.silent, name)
	w.Tell(NodeActor, "%s recovers", name)
	w.setReady(name, corev1.ConditionTrue)
	for _, pod := range w.Pods() {
		if pod.Spec.NodeName == name {
			w.After(w.delay(time.Second), func() { w.sync(keyOf(pod), pod.UID) })
		}
	}
}

// FailsNodes fails a node at random and lets it recover after the time.
func FailsNodes(d time.Duration) Actor {
	return func(w *World, rng *rand.Rand) {
		name := fmt.Sprintf("node-%d", rng.IntN(w.options.Nodes))
		if w.silent[name] || !w.HasNode(name) {
			return
		}
		w.FailNode(name)
		w.After(d, func() { w.RecoverNode(name) })
	}
}

// RejectsPods lets the kubelet of a node at random reject the pods that come within the time, for it has run out of
// something that the scheduler counts otherwise. They have failed before any container ran, and stay until somebody deletes
// them.
func RejectsPods(d time.Duration) Actor {
	return func(w *World, rng *rand.Rand) {
		name := fmt.Sprintf("node-%d", rng.IntN(w.options.Nodes))
		w.Tell(KubeletActor, "%s rejects pods for %s", name, d)
		w.full[name] = w.now.Add(d)
	}
}

// EvictsPods lets the kubelet of a pod at random end its containers for want of memory. The pod has
// failed then and stays until somebody deletes it.
func EvictsPods(w *World, rng *rand.Rand) {
	pod := anyPod(w, rng)
	if pod == nil || pod.DeletionTimestamp != nil {
		return
	}
	if r := w.runtimes[pod.UID]; r != nil && !r.ending && !w.silent[r.node] {
		w.Tell(KubeletActor, "evicts pod %s", pod.Name)
		r.ending = true
		w.stop(r, corev1.PodFailed)
	}
}
