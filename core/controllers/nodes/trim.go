package nodes

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// Cached are the settings of a cache of all nodes, also of an operator that is restricted to one namespace, trimmed to
// names and labels, taints, and since when a node is ready or not.
func Cached() cache.ByObject { return cached(trim) }

// CachedWithAllocatable is Cached together with the allocatable resources.
func CachedWithAllocatable() cache.ByObject {
	return cached(func(node *corev1.Node) *corev1.Node {
		trimmed := trim(node)
		trimmed.Status.Allocatable = node.Status.Allocatable
		return trimmed
	})
}

func cached(trim func(*corev1.Node) *corev1.Node) cache.ByObject {
	return cache.ByObject{Field: fields.Everything(), Transform: func(object any) (any, error) {
		node, ok := object.(*corev1.Node)
		if !ok {
			return object, nil // a deletion that the watch missed; it holds a trimmed object
		}
		return trim(node), nil
	}}
}

func trim(node *corev1.Node) *corev1.Node {
	trimmed := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:              node.Name,
			UID:               node.UID,
			ResourceVersion:   node.ResourceVersion,
			Labels:            node.Labels,
			CreationTimestamp: node.CreationTimestamp,
			DeletionTimestamp: node.DeletionTimestamp,
		},
		Spec: corev1.NodeSpec{Unschedulable: node.Spec.Unschedulable, Taints: node.Spec.Taints},
	}
	if c := readyCondition(node); c != nil {
		trimmed.Status.Conditions = []corev1.NodeCondition{{
			Type:               c.Type,
			Status:             c.Status,
			LastTransitionTime: c.LastTransitionTime,
		}}
	}
	return trimmed
}

// Changed reports whether two versions of a node differ in a field that rules read.
func Changed(old, now *corev1.Node) bool {
	return old.UID != now.UID || ReadinessChanged(old, now) || !equality.Semantic.DeepEqual(old.Status.Allocatable, now.Status.Allocatable) || !maps.Equal(old.Labels, now.Labels) ||
		old.Spec.Unschedulable != now.Spec.Unschedulable || !slices.EqualFunc(old.Spec.Taints, now.Spec.Taints, sameTaint)
}

// sameTaint leaves out when a taint was added.
func sameTaint(a, b corev1.Taint) bool {
	return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect
}

// ReadinessChanged reports whether one of two versions of a node is ready and the other is not.
func ReadinessChanged(old, now *corev1.Node) bool { return isReady(old) != isReady(now) }

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
