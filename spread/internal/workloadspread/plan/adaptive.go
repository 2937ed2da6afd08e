package plan

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podstate"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/subsets"
)

func (c *computation) patience() time.Duration { return subsets.PatienceOf(c.Spread) }

// setCondition closes a subset that has pods which have been unschedulable for too long, and opens it again after a
// pause. The last subset is never closed: there is none after it.
func (c *computation) setCondition(e *v1beta1.SubsetStatus, subset int, pods []*corev1.Pod, total bool) {
	if c.patience() == 0 {
		e.Conditions = nil
		return
	}
	before := meta.FindStatusCondition(e.Conditions, v1beta1.SubsetSchedulable)
	closed := before != nil && before.Status == metav1.ConditionFalse
	late := c.late(pods)
	last := subset == len(c.limits)-1
	switch {
	case late != nil && !last:
		if !closed {
			c.setSchedulable(e, metav1.ConditionFalse, v1beta1.ReasonPodUnschedulable, whyLate(late))
		}
		return
	case closed && !last:
		if left := before.LastTransitionTime.Add(c.Pause).Sub(c.Now); left > 0 {
			c.plan.RequeueWithin(left)
			return
		}
		if total {
			c.notify(corev1.EventTypeNormal, EventRecovered, "subset "+e.Name+" gets pods again")
		}
	}
	c.setSchedulable(e, metav1.ConditionTrue, v1beta1.ReasonSufficient, "")
}

func (c *computation) setSchedulable(e *v1beta1.SubsetStatus, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&e.Conditions, metav1.Condition{
		Type:               v1beta1.SubsetSchedulable,
		Status:             status,
		Reason:             reason,
		Message:            message,
		LastTransitionTime: c.now().Rfc3339Copy(),
	})
}

// late returns the first pod that has been unschedulable for too long, and asks for a pass when one will have been.
func (c *computation) late(pods []*corev1.Pod) *corev1.Pod {
	for _, pod := range pods {
		since, waits := unschedulableSince(pod)
		if !waits {
			continue
		}
		left := since.Add(c.patience()).Sub(c.Now)
		if left <= 0 {
			return pod
		}
		c.plan.RequeueWithin(left)
	}
	return nil
}

// unschedulableSince returns since when the scheduler has found no node for the pod, and whether that is so now.
func unschedulableSince(pod *corev1.Pod) (time.Time, bool) {
	scheduled := podstate.Condition(pod, corev1.PodScheduled)
	if !podstate.IsActive(pod) || pod.Status.Phase != corev1.PodPending || pod.Spec.NodeName != "" || scheduled == nil ||
		scheduled.Status != corev1.ConditionFalse || scheduled.Reason != corev1.PodReasonUnschedulable {
		return time.Time{}, false
	}
	if scheduled.LastTransitionTime.IsZero() {
		return pod.CreationTimestamp.Time, true
	}
	return scheduled.LastTransitionTime.Time, true
}

func whyLate(pod *corev1.Pod) string {
	text := fmt.Sprintf("pod %s is unschedulable", pod.Name)
	if c := podstate.Condition(pod, corev1.PodScheduled); c.Message != "" {
		text += ": " + c.Message
	}
	return text
}

// reschedule deletes pods that have been unschedulable for too long, of subsets that are closed in the status: then their
// successors go elsewhere. It stops where one more would end the workload.
func (c *computation) reschedule() {
	patience := c.patience()
	if patience == 0 || len(c.limits) == 0 {
		return
	}
	var actions []action.Action
	for _, version := range c.versions() {
		known := c.known(version)
		for i, pods := range c.groups[version].subsets[:len(c.limits)-1] {
			if !subsets.IsUnschedulable(known[i].Conditions) {
				continue
			}
			for _, pod := range pods {
				since, waits := unschedulableSince(pod)
				switch {
				case !waits || since.Add(patience).After(c.Now):
				case c.Target.Deletable != nil && int(*c.Target.Deletable) <= len(actions):
					c.kept = cmp.Or(c.kept, pod)
				default:
					actions = append(actions, rescheduling(pod, known[i].Name))
				}
			}
		}
	}
	c.plan.AddFirst(action.Step{Name: "reschedule", Actions: actions})
}

func rescheduling(pod *corev1.Pod, subset string) action.Action {
	return action.Action{
		Verb:        action.Delete,
		Object:      pod,
		Independent: true,
		Reason:      "Reschedule",
		Message:     "unschedulable in subset " + subset,
		Event: &action.Event{
			Succeeded: EventRescheduled,
			Failed:    EventDeletePodFailed,
			Note:      "deleted pod " + pod.Name + ": it was unschedulable in subset " + subset,
		},
	}
}
