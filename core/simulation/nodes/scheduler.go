package nodes

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/simulation/cluster"
)

// unschedulableText is what the scheduler says of a pod that fits nowhere.
const unschedulableText = "0 nodes are available"

// schedule gives the pod a node once its claims exist, or says that it does not fit.
func (w *World) schedule(key types.NamespacedName, uid types.UID) {
	pod := w.Pod(key, uid)
	if pod == nil || pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil {
		return
	}
	if !w.claimsExist(pod) {
		w.After(w.Takes(cluster.Scheduling, 2*time.Second), func() { w.schedule(key, uid) })
		return
	}
	n := *pod
	condition := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}
	node, reason := w.choose(pod)
	if node == "" || !w.HasNode(node) {
		condition = corev1.PodCondition{
			Type:    corev1.PodScheduled,
			Status:  corev1.ConditionFalse,
			Reason:  corev1.PodReasonUnschedulable,
			Message: cmp.Or(reason, unschedulableText),
		}
	} else {
		n.Spec.NodeName = node
	}
	n.Status.Conditions = w.withConditions(pod.Status.Conditions, condition)
	if cluster.Same(pod.Status, n.Status) && pod.Spec.NodeName == n.Spec.NodeName {
		return
	}
	w.Commit(cluster.Event{
		Type:        cluster.Modified,
		Actor:       cluster.SchedulerActor,
		Object:      &n,
		Old:         pod,
		Subresource: "binding",
	})
}

// choose returns the node of a pod, or the reason why none takes it.
func (w *World) choose(pod *corev1.Pod) (node, reason string) {
	switch {
	case w.Options.Schedule != nil:
		return w.Options.Schedule(w.World, pod)
	case w.Options.Unschedulable != nil && w.Options.Unschedulable(pod):
		return "", ""
	}
	return w.nodeFor(pod), ""
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
	return fmt.Sprintf("node-%d", w.Pick(w.Options.Nodes))
}

func (w *World) claimsExist(pod *corev1.Pod) bool {
	for _, v := range pod.Spec.Volumes {
		if c := v.PersistentVolumeClaim; c != nil {
			if cluster.Get[*corev1.PersistentVolumeClaim](w.View(nil), pod.Namespace, c.ClaimName) == nil {
				return false
			}
		}
	}
	return true
}
