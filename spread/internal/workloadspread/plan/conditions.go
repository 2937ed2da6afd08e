package plan

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
)

// setConditions sets the conditions of the spread as a whole. Conditions that are not set are dropped.
func (c *computation) setConditions(next *v1beta1.WorkloadSpreadStatus) {
	switch {
	case c.Target.Unknown != nil:
		c.tell(next, v1beta1.TargetFound, metav1.ConditionFalse, v1beta1.ReasonUnreadable, c.Target.Unknown.Error())
	case c.Target.Missing:
		c.tell(next, v1beta1.TargetFound, metav1.ConditionFalse, v1beta1.ReasonNotFound, missing(c.Spread.Spec.TargetReference))
	default:
		c.tell(next, v1beta1.TargetFound, metav1.ConditionTrue, v1beta1.ReasonFound, "")
	}
	if without := c.withoutSubset(); len(without) > 0 {
		c.tell(next, v1beta1.AllPlaced, metav1.ConditionFalse, v1beta1.ReasonWithoutSubset, fmt.Sprintf(
			"%d pods have no subset, such as %s: all subsets were full, or their nodes match none", len(without), without[0].Name))
	} else {
		c.tell(next, v1beta1.AllPlaced, metav1.ConditionTrue, v1beta1.ReasonPlaced, "")
	}
	c.setOverlapped(next)
	c.setKept(next)
}

// missing describes a target that is absent. Commands read files without a schema: a spread there may lack the reference.
func missing(ref *v1beta1.TargetReference) string {
	if ref == nil {
		return "spec.targetRef is empty: name a workload"
	}
	return fmt.Sprintf("%s %s not found, or the cluster does not serve the kind", ref.Kind, ref.Name)
}

// withoutSubset are the active pods that are in no subset and do not enter one now, oldest first.
func (c *computation) withoutSubset() (without []*corev1.Pod) {
	coming := make(map[string]bool, len(c.reserved))
	for _, r := range c.reserved {
		coming[r.pod] = true
	}
	for _, pods := range [][]*corev1.Pod{c.strays, c.loose} {
		for _, pod := range pods {
			if _, adopted := c.adopted[pod]; !adopted && !coming[pod.Name] {
				coming[pod.Name] = true // a stray is loose, too
				without = append(without, pod)
			}
		}
	}
	return without
}

func (c *computation) tell(next *v1beta1.WorkloadSpreadStatus, kind string, status metav1.ConditionStatus, reason, message string) {
	if before := meta.FindStatusCondition(c.Spread.Status.Conditions, kind); before != nil {
		next.Conditions = append(next.Conditions, *before)
	}
	meta.SetStatusCondition(&next.Conditions, metav1.Condition{
		Type:               kind,
		Status:             status,
		Reason:             reason,
		Message:            message,
		ObservedGeneration: c.Spread.Generation,
		LastTransitionTime: c.now().Rfc3339Copy(),
	})
}

// Unreadable returns the status of a spread with a target that cannot be read: known values stay.
func Unreadable(s Snapshot, err error) *v1beta1.WorkloadSpreadStatus {
	c := computation{Snapshot: s}
	next := s.Spread.Status.DeepCopy()
	next.Conditions = nil
	c.tell(next, v1beta1.TargetFound, metav1.ConditionFalse, v1beta1.ReasonUnreadable, err.Error())
	return next
}
