package simulate

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// unschedulableText is what the scheduler says of a pod that fits nowhere.
const unschedulableText = "0 nodes are available"

// schedule gives the pod a node once its claims exist, or says that it does not fit.
func (w *World) schedule(key types.NamespacedName, uid types.UID) {
	pod := w.pod(key, uid)
	if pod == nil || pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil {
		return
	}
	if !w.claimsExist(pod) {
		w.After(w.delay(2*time.Second), func() { w.schedule(key, uid) })
		return
	}
	n := *pod
	condition := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}
	node := ""
	if w.options.Unschedulable == nil || !w.options.Unschedulable(pod) {
		node = w.nodeFor(pod)
	}
	if node == "" || !w.HasNode(node) {
		condition = corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: unschedulableText,
		}
	} else {
		n.Spec.NodeName = node
	}
	n.Status.Conditions = w.withConditions(pod.Status.Conditions, condition)
	if same(pod.Status, n.Status) && pod.Spec.NodeName == n.Spec.NodeName {
		return
	}
	w.commit(Event{Type: Modified, Actor: SchedulerActor, Object: &n, Old: pod, Subresource: "binding"})
}

// nodeFor returns the node that the pod asks for by name, or any.
func (w *World) nodeFor(pod *corev1.Pod) string {
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			for _, f := range term.MatchFields {
				if f.Key == "metadata.name" && f.Operator == corev1.NodeSelectorOpIn && len(f.Values) == 1 {
					return f.Values[0]
				}
			}
		}
	}
	return fmt.Sprintf("node-%d", w.rng.IntN(w.options.Nodes))
}

func (w *World) claimsExist(pod *corev1.Pod) bool {
	for _, v := range pod.Spec.Volumes {
		if c := v.PersistentVolumeClaim; c != nil {
			if Get[*corev1.PersistentVolumeClaim](w.View(nil), pod.Namespace, c.ClaimName) == nil {
				return false
			}
		}
	}
	return true
}

// pod returns the pod of that name when it still has the UID.
func (w *World) pod(key types.NamespacedName, uid types.UID) *corev1.Pod {
	pod := Get[*corev1.Pod](w.View(nil), key.Namespace, key.Name)
	if pod == nil || pod.UID != uid {
		return nil
	}
	return pod
}

// withConditions returns have with the conditions put in; a transition time moves only with the status.
func (w *World) withConditions(have []corev1.PodCondition, put ...corev1.PodCondition) []corev1.PodCondition {
	all := slices.Clone(have)
	for _, c := range put {
		c.LastTransitionTime = w.stamp()
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
