package plan

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/workloads/conditions"
	"github.com/flotilla-project/flotilla/core/workloads/podupdate"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

func (p *pass) nextConditions(status v1beta1.StatefulSetStatus, todo Plan, done action.Failures, now metav1.Time) []workload.Condition {
	list := status.Conditions
	failed := failureOr(done.ScaleError, waitWith(todo, WaitClaimTemplateRemoved))
	list = failureCondition(list, v1beta1.StatefulSetFailedCreatePod, failed.reason, failed.message, now)
	failed = failureOr(done.UpdateError, waitWith(todo, podupdate.WaitNotInPlace))
	list = failureCondition(list, v1beta1.StatefulSetFailedUpdatePod, failed.reason, failed.message, now)
	resize := failureOr("", waitWith(todo, WaitResizeFailed))
	if w := p.refusedGrowth(todo); resize.message == "" && w != nil {
		resize = failure{w.Reason, w.Message}
	}
	list = failureCondition(list, v1beta1.StatefulSetVolumeResizeFailed, resize.reason, resize.message, now)
	list = conditions.Set(list, p.available(), now)
	list = conditions.Set(list, p.progressing(todo), now)
	return conditions.Summarize(list, p.summary(status, todo, done), now)
}

// failure is the reason of a failure and its message.
type failure struct{ reason, message string }

// failureOr is the text of an error or, without one, a wait that needs intervention.
func failureOr(text string, w *action.Wait) failure {
	if text == "" && w != nil {
		return failure{w.Reason, w.Message}
	}
	return failure{conditions.ReasonError, text}
}

// failureCondition sets a condition that is True while something fails, and False once it no longer does.
func failureCondition(list []workload.Condition, conditionType, reason, message string, now metav1.Time) []workload.Condition {
	c := workload.Condition{
		Type:    conditionType,
		Status:  corev1.ConditionTrue,
		Reason:  reason,
		Message: message,
	}
	if message == "" {
		if conditions.Get(list, conditionType) == nil {
			return list
		}
		c.Status = corev1.ConditionFalse
		c.Reason = v1beta1.ReasonRecovered
	}
	return conditions.Set(list, c, now)
}

// available reports whether all wanted pods exist and are available.
func (p *pass) available() workload.Condition {
	serving := p.servingPods()
	c := workload.Condition{
		Type:    v1beta1.StatefulSetAvailable,
		Status:  corev1.ConditionTrue,
		Reason:  v1beta1.ReasonAllPodsAvailable,
		Message: fmt.Sprintf("%d of %d pods available", serving, p.numbers.replicas),
	}
	if serving < int(p.numbers.replicas) {
		c.Status = corev1.ConditionFalse
		c.Reason = v1beta1.ReasonPodsUnavailable
	}
	return c
}

// servingPods counts the live pods that are available.
func (p *pass) servingPods() int {
	n := 0
	for i := range p.slots {
		if o := p.slots[i].pod; o != nil && o.serving() {
			n++
		}
	}
	return n
}

// progressing reports how the rollout continues and the pods that it waits for.
func (p *pass) progressing(todo Plan) workload.Condition {
	s := p.progress(todo)
	c := workload.Condition{
		Type:    v1beta1.StatefulSetProgressing,
		Status:  corev1.ConditionTrue,
		Reason:  s.Reason,
		Message: s.Message,
	}
	if s.Stalled {
		c.Status = corev1.ConditionFalse
	}
	return c
}

// progress is the reason and the message of Progressing.
func (p *pass) progress(todo Plan) conditions.Summary {
	wait := p.mainWait(todo)
	left := p.countOutdated()
	switch {
	case todo.Err != nil:
		return conditions.Summary{
			Stalled: true,
			Reason:  v1beta1.ReasonInvalidSpec,
			Message: todo.Err.Error(),
		}
	case wait != nil && blockedReason(wait.Reason) != v1beta1.ReasonRollingOut:
		return conditions.Summary{
			Reason:  blockedReason(wait.Reason),
			Message: p.withSince(wait),
			Stalled: needsIntervention(wait.Reason),
		}
	case rollingUpdate(p.Set).Paused && left.inRange > 0:
		return conditions.Summary{Reason: v1beta1.ReasonPaused, Message: conditions.PausedMessage(left.inRange)}
	case wait != nil:
		return conditions.Summary{Reason: v1beta1.ReasonRollingOut, Message: wait.String()}
	case left.inRange == 0 && left.kept > 0 && p.servingPods() == int(p.numbers.replicas):
		return conditions.Summary{Reason: v1beta1.ReasonPartitionReached, Message: fmt.Sprintf("partition keeps %d pods at the current revision", left.kept)}
	case left.waiting == 0 && len(p.condemned) == 0 && p.servingPods() == int(p.numbers.replicas):
		return conditions.Summary{Reason: v1beta1.ReasonComplete, Message: completeMessage(p.Set)}
	}
	return conditions.Summary{Reason: v1beta1.ReasonRollingOut, Message: fmt.Sprintf("%d of %d pods available, %d are not updated yet",
		p.servingPods(), p.numbers.replicas, left.inRange)}
}

// completeMessage: with type OnDelete, pods of older revisions may be among those that are available.
func completeMessage(set *v1beta1.StatefulSet) string {
	if onDelete(set) {
		return "all pods are available; with updateStrategy OnDelete you delete pods to update them"
	}
	return "all pods are up to date and available"
}

// outdatedCount counts live pods that differ from the template.
type outdatedCount struct {
	inRange int // the update is to reach them
	kept    int // the partition keeps them
	waiting int // both, without those that type OnDelete leaves alone
}

func (p *pass) countOutdated() outdatedCount {
	var l outdatedCount
	for i := range p.slots {
		switch o := p.slots[i].pod; {
		case o == nil || o.upToDate() || onDelete(p.Set):
		case o.inRange:
			l.inRange++
			l.waiting++
		case !o.updated:
			l.kept++
			l.waiting++
		}
	}
	return l
}

// mainWait is the wait that the user should know of first: one that needs intervention, else the first one. A refused
// action goes before waits for pods, which come and go with every try of it.
func (p *pass) mainWait(todo Plan) *action.Wait {
	var first, refused *action.Wait
	for i := range todo.Waits {
		w := &todo.Waits[i]
		if needsIntervention(w.Reason) {
			return w
		}
		if refused == nil && (w.Reason == action.WaitRefused || w.Reason == action.WaitBudget || w.Reason == action.WaitNodeTooSmall) {
			refused = &action.Wait{Reason: w.Reason, Message: w.Message} // which object is tried next means nothing
		}
		if first == nil || blockedReason(first.Reason) == v1beta1.ReasonRollingOut && blockedReason(w.Reason) != v1beta1.ReasonRollingOut {
			first = w
		}
	}
	if refused != nil && (blockedReason(first.Reason) == v1beta1.ReasonRollingOut || first.Reason == v1beta1.ReasonBlockedByUnavailablePods ||
		first.Reason == action.WaitBudget) {
		return refused
	}
	return first
}

// needsIntervention reports whether the wait does not end without the user's help.
func needsIntervention(reason string) bool {
	return reason == podupdate.WaitNotInPlace || reason == WaitResizeFailed || reason == WaitClaimTemplateRemoved
}

// blockedReason is the reason of Progressing for a wait.
func blockedReason(reason string) string {
	switch reason {
	case podupdate.WaitPreNormalHook, podupdate.WaitInPlaceUpdateHook, podupdate.WaitPreDeleteHook:
		return v1beta1.ReasonBlockedByHook
	case WaitStaleClaim, WaitClaimGoing, WaitClaimTemplateRemoved, WaitResizeFailed, WaitResize:
		return v1beta1.ReasonBlockedByVolume
	case v1beta1.ReasonBlockedByUnavailablePods, action.WaitBudget, podupdate.WaitNotInPlace, podupdate.WaitNodeAgentMissing:
		return reason
	}
	return v1beta1.ReasonRollingOut
}

// summary reports for kstatus whether the set is as its spec wants it, and if not, the pods that it waits for.
func (p *pass) summary(status v1beta1.StatefulSetStatus, todo Plan, done action.Failures) conditions.Summary {
	s := p.progress(todo)
	healthy := p.servingPods() == int(p.numbers.replicas) && len(p.condemned) == 0
	switch {
	case todo.Err != nil:
	case len(todo.Waits) == 0 && healthy && s.Reason == v1beta1.ReasonPaused:
		return conditions.DoneSummary(p.countOutdated().inRange)
	case len(todo.Waits) == 0 && healthy && (s.Reason == v1beta1.ReasonComplete || s.Reason == v1beta1.ReasonPartitionReached):
		return conditions.DoneSummary(0)
	case s.ReportFailures(done, p.firstTrouble()):
	default:
		s.Message = fmt.Sprintf("%d of %d pods available, %d updated%s", status.AvailableReplicas, p.numbers.replicas, status.UpdatedReplicas, p.firstTrouble())
		if wait := p.mainWait(todo); wait != nil {
			s.Reason = wait.Reason
			s.Message += "; " + p.withSince(wait)
		}
	}
	return s
}

// firstTrouble describes the trouble of the pod of the lowest ordinal in trouble, in words that follow others; empty
// where none is.
func (p *pass) firstTrouble() string {
	return podstate.FirstTrouble(len(p.slots), func(i int) (*podstate.State, bool) {
		if o := p.slots[i].pod; o != nil {
			return &o.State, o.updated
		}
		return nil, false
	})
}

// withSince is the wait in words, with the moment since when a hook holds its pod.
func (p *pass) withSince(w *action.Wait) string {
	if blockedReason(w.Reason) == v1beta1.ReasonBlockedByHook {
		for i := range p.pods {
			if o := p.pods[i].Pod; o.Name == w.Object && o.Annotations[contract.LifecycleTimestampAnnotation] != "" {
				return w.String() + " since " + o.Annotations[contract.LifecycleTimestampAnnotation]
			}
		}
	}
	return w.String()
}

// waitWith is the first wait for the reason, or nil.
func waitWith(todo Plan, reason string) *action.Wait {
	for i := range todo.Waits {
		if todo.Waits[i].Reason == reason {
			return &todo.Waits[i]
		}
	}
	return nil
}
