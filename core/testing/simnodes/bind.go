package simnodes

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
)

// unschedulableRetry is how long a pod that fits nowhere waits for its next try.
const unschedulableRetry = time.Second

// bind assigns the pod to the least loaded node that fits: by capacity for pods, by node selector,
// and by required node affinity against the labels of registration and the node's name.
func (n *Nodes) bind(ctx context.Context, key types.NamespacedName, pod *corev1.Pod) (time.Time, error) {
	if pod.DeletionTimestamp != nil || len(pod.Spec.SchedulingGates) > 0 {
		return time.Time{}, nil
	}
	name := n.choose(key, pod)
	if name == "" {
		return n.options.Clock.Now().Add(unschedulableRetry), n.reportUnschedulable(ctx, pod)
	}
	err := n.client.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace,
			Name:      pod.Name,
			UID:       pod.UID,
		},
		Target: corev1.ObjectReference{Kind: "Node", Name: name},
	}, metav1.CreateOptions{})
	if err != nil {
		return time.Time{}, fmt.Errorf("bind pod %s to node %s: %w", key, name, err)
	}
	n.counts.bound.Add(1)
	return time.Time{}, nil
}

// choose picks the pod's node and counts the pod there; "" if none fits. A pod that was chosen for
// before keeps its node.
func (n *Nodes) choose(key types.NamespacedName, pod *corev1.Pod) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if home := n.placed[key]; home != nil && fits(pod, home) {
		return home.name
	}
	var best *node
	for _, candidate := range n.nodes {
		if candidate.pods < n.options.PodsPerNode && (best == nil || candidate.pods < best.pods) && fits(pod, candidate) {
			best = candidate
		}
	}
	n.place(key, best)
	if best == nil {
		return ""
	}
	return best.name
}

// place counts the pod on home, nil for nowhere; n.mu is held.
func (n *Nodes) place(key types.NamespacedName, home *node) {
	if old := n.placed[key]; old != nil {
		old.pods--
	}
	delete(n.placed, key)
	if home != nil {
		home.pods++
		n.placed[key] = home
	}
}

func (n *Nodes) reportUnschedulable(ctx context.Context, pod *corev1.Pod) error {
	status := pod.Status.DeepCopy()
	old := findCondition(status, corev1.PodScheduled)
	if old != nil && old.Status == corev1.ConditionFalse {
		return nil
	}
	setCondition(status, corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: fmt.Sprintf("0/%d simulated nodes fit", len(n.nodes)), ObservedGeneration: pod.Generation,
	}, n.options.Clock.Now())
	if err := n.report(ctx, keyOf(pod), pod, status); err != nil {
		return fmt.Errorf("report pod %s unschedulable: %w", keyOf(pod), err)
	}
	return nil
}

// fits reports whether node selector and required node affinity let the pod onto the node.
func fits(pod *corev1.Pod, home *node) bool {
	if !labels.SelectorFromSet(pod.Spec.NodeSelector).Matches(labels.Set(home.labels)) {
		return false
	}
	affinity := pod.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return true
	}
	terms := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	return slices.ContainsFunc(terms, func(term corev1.NodeSelectorTerm) bool {
		return allMatch(term.MatchExpressions, home.labels) &&
			allMatch(term.MatchFields, map[string]string{metav1.ObjectNameField: home.name})
	})
}

func allMatch(requirements []corev1.NodeSelectorRequirement, set labels.Set) bool {
	for _, r := range requirements {
		requirement, err := labels.NewRequirement(r.Key, operator(r.Operator), r.Values)
		if err != nil || !requirement.Matches(set) {
			return false
		}
	}
	return true
}

func operator(o corev1.NodeSelectorOperator) selection.Operator {
	switch o {
	case corev1.NodeSelectorOpIn:
		return selection.In
	case corev1.NodeSelectorOpNotIn:
		return selection.NotIn
	case corev1.NodeSelectorOpExists:
		return selection.Exists
	case corev1.NodeSelectorOpDoesNotExist:
		return selection.DoesNotExist
	case corev1.NodeSelectorOpGt:
		return selection.GreaterThan
	case corev1.NodeSelectorOpLt:
		return selection.LessThan
	}
	return ""
}
