package daemonset

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// cachedNodes are the settings of a cache of all nodes, also of an operator that is restricted to one namespace.
func cachedNodes() cache.ByObject {
	return cache.ByObject{Transform: trimNode, Field: fields.Everything()}
}

// trimNode keeps of a node what rules read: names and labels, taints, and since when it is ready or not. Heartbeats
// then change nothing but the version.
func trimNode(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil // a deletion that the watch missed; it holds a trimmed object
	}
	trimmed := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, Labels: node.Labels,
			CreationTimestamp: node.CreationTimestamp, DeletionTimestamp: node.DeletionTimestamp,
		},
		Spec: corev1.NodeSpec{Unschedulable: node.Spec.Unschedulable, Taints: node.Spec.Taints},
	}
	if c := readyCondition(node); c != nil {
		trimmed.Status.Conditions = []corev1.NodeCondition{{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime}}
	}
	return trimmed, nil
}

// nodeChanged reports whether two versions of a node differ in what rules read.
func nodeChanged(old, now *corev1.Node) bool {
	return old.UID != now.UID || readinessChanged(old, now) || !maps.Equal(old.Labels, now.Labels) ||
		old.Spec.Unschedulable != now.Spec.Unschedulable || !slices.EqualFunc(old.Spec.Taints, now.Spec.Taints, sameTaint)
}

// sameTaint leaves out when a taint was added.
func sameTaint(a, b corev1.Taint) bool {
	return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect
}

func readinessChanged(old, now *corev1.Node) bool { return isReady(old) != isReady(now) }

func isReady(node *corev1.Node) bool {
	c := readyCondition(node)
	return c != nil && c.Status == corev1.ConditionTrue
}

func readyCondition(node *corev1.Node) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
			return c
		}
	}
	return nil
}
