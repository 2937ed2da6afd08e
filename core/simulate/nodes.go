package simulate

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// FailNode silences the kubelet of a node, such as "node-0": its pods live on, but nothing of them is
// reported and no deletion ends. The pods are marked not ready, as the node controller does.
func (w *World) FailNode(name string) {
	w.silent[name] = true
	w.Tell(NodeActor, "%s fails", name)
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

// RecoverNode lets the kubelet of the node catch up.
func (w *World) RecoverNode(name string) {
	delete(w.silent, name)
	w.Tell(NodeActor, "%s recovers", name)
	for _, pod := range w.Pods() {
		if pod.Spec.NodeName == name {
			w.After(w.delay(time.Second), func() { w.sync(keyOf(pod), pod.UID) })
		}
	}
}
