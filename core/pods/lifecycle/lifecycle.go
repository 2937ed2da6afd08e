package lifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
)

// State is the pod's lifecycle state. A pod without the label is Normal.
func State(pod *corev1.Pod) string { return orNormal(pod.Labels[contract.LifecycleStateLabel]) }

// Set moves the pod to the state: label, timestamp, and the removal of the not-ready keys that the
// state does not know. The same state writes nothing but such a removal; coming back to the state
// that the pod has in the cluster takes label and timestamp back. A pod that has left PreparingNormal before its time goes
// there in the place of Normal.
func Set(c *action.PodChange, state string) {
	state = throughPreNormal(c, state)
	dropForeignKeys(c, state)
	if stateAfter(c) == state {
		return
	}
	if State(c.Pod) == state {
		restore(c)
		return
	}
	c.SetLabel(contract.LifecycleStateLabel, state)
	c.SetAnnotation(contract.LifecycleTimestampAnnotation, c.Now.UTC().Format(time.RFC3339))
}

// Refresh makes the transitions that need no decision of the workload, at most one in a pass: PreparingNormal to
// Normal, Updating to Updated or Normal, Updated to Normal. It also removes not-ready keys that do not belong to the
// pod's state. updateComplete means that no in-place update of the pod is under way; a pod that was never updated is
// complete. It reports whether the state changed.
func Refresh(c *action.PodChange, l *workload.Lifecycle, updateComplete bool) bool {
	before := stateAfter(c)
	dropForeignKeys(c, before)
	switch before {
	case contract.LifecyclePreparingNormal:
		if updateComplete && mayBeNormal(c, l) {
			Set(c, contract.LifecycleNormal)
		}
	case contract.LifecycleUpdating:
		if updateComplete {
			Set(c, afterUpdate(c, l))
		}
	case contract.LifecycleUpdated:
		if h := updateHook(l); h == nil || allHooked(h, c) {
			Set(c, contract.LifecycleNormal)
		}
	}
	return stateAfter(c) != before
}

// BeginUpdate moves a pod that the workload wants to update in place towards Updating, and reports whether the update
// may be written in the same change. It is false while the hook inPlaceUpdate holds the pod in PreparingUpdate, and for
// a pod in PreparingDelete. A pod in Updated takes the hook again first. A pod in Updating continues: its hook was
// released already.
func BeginUpdate(c *action.PodChange, l *workload.Lifecycle) (proceed bool) {
	h := updateHook(l)
	switch stateAfter(c) {
	case contract.LifecyclePreparingDelete:
		return false
	case contract.LifecycleUpdating:
		return true
	case contract.LifecycleUpdated:
		takeHook(c, h)
	}
	leavePreNormal(c, l)
	if !hooked(h, c) {
		Set(c, contract.LifecycleUpdating)
		return true
	}
	Set(c, contract.LifecyclePreparingUpdate)
	if h.MarkPodNotReady {
		AddNotReadyKey(c, contract.LifecycleUserAgent, contract.PreUpdateHookKey)
	}
	return false
}

// CancelUpdate moves a pod out of PreparingUpdate if its update is no longer wanted: to Updated when the hook
// inPlaceUpdate is not wholly on the pod, else to Normal. Other states stay.
func CancelUpdate(c *action.PodChange, l *workload.Lifecycle) {
	if stateAfter(c) == contract.LifecyclePreparingUpdate {
		Set(c, afterUpdate(c, l))
	}
}

// BeginDelete reports whether a pod that the workload wants to delete may be deleted now. While the
// hook preDelete holds the pod it is false, and the pod goes to PreparingDelete.
func BeginDelete(c *action.PodChange, l *workload.Lifecycle) (proceed bool) {
	if l == nil || !hooked(l.PreDelete, c) {
		return true
	}
	leavePreNormal(c, l)
	Set(c, contract.LifecyclePreparingDelete)
	if l.PreDelete.MarkPodNotReady {
		AddNotReadyKey(c, contract.LifecycleUserAgent, contract.PreDeleteHookKey)
	}
	return false
}

// CancelDelete takes a pod back from PreparingDelete to PreparingNormal and reports whether it did.
// There is no way back while the hook preDelete or inPlaceUpdate marks pods not ready. That the pod
// is not specified for deletion is the caller's to know.
func CancelDelete(c *action.PodChange, l *workload.Lifecycle) bool {
	if stateAfter(c) != contract.LifecyclePreparingDelete || marksNotReady(l) {
		return false
	}
	Set(c, contract.LifecyclePreparingNormal)
	return true
}

// leavePreNormal marks a pod that leaves PreparingNormal while the hook preNormal still has to let it.
func leavePreNormal(c *action.PodChange, l *workload.Lifecycle) {
	if l != nil && l.PreNormal != nil && stateAfter(c) == contract.LifecyclePreparingNormal {
		c.SetAnnotation(contract.PreNormalPendingAnnotation, "true")
	}
}

// throughPreNormal is the state in which a pod arrives that is to come to the state.
func throughPreNormal(c *action.PodChange, state string) string {
	_, pending := c.LookupAnnotation(contract.PreNormalPendingAnnotation)
	if pending && state == contract.LifecycleNormal && stateAfter(c) != contract.LifecyclePreparingNormal {
		state = contract.LifecyclePreparingNormal
	}
	if state == contract.LifecyclePreparingNormal || state == contract.LifecycleNormal {
		c.RemoveAnnotation(contract.PreNormalPendingAnnotation)
	}
	return state
}

// dropForeignKeys removes the keys that a pod in the state must not hold. preUpdateHook outlives the way from an update
// to a deletion, so that the pod stays out of service in between.
func dropForeignKeys(c *action.PodChange, state string) {
	if state != contract.LifecyclePreparingDelete {
		RemoveNotReadyKey(c, contract.LifecycleUserAgent, contract.PreDeleteHookKey)
		if state != contract.LifecyclePreparingUpdate && state != contract.LifecycleUpdating {
			RemoveNotReadyKey(c, contract.LifecycleUserAgent, contract.PreUpdateHookKey)
		}
	}
}

// restore takes the change of label and timestamp back.
func restore(c *action.PodChange) {
	if old, ok := c.Pod.Labels[contract.LifecycleStateLabel]; ok {
		c.SetLabel(contract.LifecycleStateLabel, old)
	} else {
		c.RemoveLabel(contract.LifecycleStateLabel)
	}
	if old, ok := c.Pod.Annotations[contract.LifecycleTimestampAnnotation]; ok {
		c.SetAnnotation(contract.LifecycleTimestampAnnotation, old)
	} else {
		c.RemoveAnnotation(contract.LifecycleTimestampAnnotation)
	}
}

func mayBeNormal(c *action.PodChange, l *workload.Lifecycle) bool {
	if l == nil || l.PreNormal == nil {
		return c.Pod.Spec.NodeName != ""
	}
	return allHooked(l.PreNormal, c)
}

// afterUpdate is the state that follows a finished or an abandoned update.
func afterUpdate(c *action.PodChange, l *workload.Lifecycle) string {
	if l != nil && !allHooked(l.InPlaceUpdate, c) {
		return contract.LifecycleUpdated
	}
	return contract.LifecycleNormal
}

func updateHook(l *workload.Lifecycle) *workload.LifecycleHook {
	if l == nil {
		return nil
	}
	return l.InPlaceUpdate
}

func marksNotReady(l *workload.Lifecycle) bool {
	return l != nil && (l.PreDelete != nil && l.PreDelete.MarkPodNotReady ||
		l.InPlaceUpdate != nil && l.InPlaceUpdate.MarkPodNotReady)
}

func stateAfter(c *action.PodChange) string { return orNormal(c.Label(contract.LifecycleStateLabel)) }

func orNormal(state string) string {
	if state == "" {
		return contract.LifecycleNormal
	}
	return state
}
