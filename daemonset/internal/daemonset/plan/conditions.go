package plan

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/workloads/conditions"
	"github.com/flotilla-project/flotilla/core/workloads/podupdate"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

func (p *pass) nextConditions(status v1beta1.DaemonSetStatus, todo Plan, done action.Failures, now metav1.Time) []workload.Condition {
	list := status.Conditions
	list = failureCondition(list, v1beta1.DaemonSetFailedCreatePod, done.ScaleError, now)
	list = failureCondition(list, v1beta1.DaemonSetFailedUpdatePod, done.UpdateError, now)
	list = conditions.Set(list, available(status), now)
	s := p.progress(todo)
	progressing := workload.Condition{
		Type:    v1beta1.DaemonSetProgressing,
		Status:  corev1.ConditionTrue,
		Reason:  s.Reason,
		Message: s.Message,
	}
	if s.Stalled {
		progressing.Status = corev1.ConditionFalse
	}
	list = conditions.Set(list, progressing, now)
	return conditions.Summarize(list, p.summary(status, todo, done), now)
}

// failureCondition sets a condition that is True while something fails, and False once it no longer does.
func failureCondition(list []workload.Condition, conditionType, message string, now metav1.Time) []workload.Condition {
	c := workload.Condition{
		Type:    conditionType,
		Status:  corev1.ConditionTrue,
		Reason:  conditions.ReasonError,
		Message: message,
	}
	if message == "" {
		if conditions.Get(list, conditionType) == nil {
			return list
		}
		c.Status, c.Reason = corev1.ConditionFalse, v1beta1.ReasonRecovered
	}
	return conditions.Set(list, c, now)
}

// available reports whether every node that should run a pod has an available one.
func available(status v1beta1.DaemonSetStatus) workload.Condition {
	c := workload.Condition{
		Type:    v1beta1.DaemonSetAvailable,
		Status:  corev1.ConditionTrue,
		Reason:  v1beta1.ReasonAllPodsAvailable,
		Message: fmt.Sprintf("%d of %d nodes have an available pod", status.NumberAvailable, status.DesiredNumberScheduled),
	}
	if status.NumberUnavailable > 0 {
		c.Status = corev1.ConditionFalse
		c.Reason = v1beta1.ReasonPodsUnavailable
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
		return conditions.Summary{Reason: blockedReason(wait.Reason), Message: wait.String()}
	case p.desired == 0 && len(p.pods) == 0:
		return conditions.Summary{Reason: v1beta1.ReasonNoEligibleNodes, Message: "no node matches the node name, node selector, affinity and tolerations of the template"}
	case paused(p.Set) && left.inRange > 0:
		return conditions.Summary{Reason: v1beta1.ReasonPaused, Message: conditions.PausedMessage(left.inRange)}
	case wait != nil:
		return conditions.Summary{Reason: v1beta1.ReasonRollingOut, Message: wait.String()}
	case left.inRange > 0 || left.unserved > 0:
		return conditions.Summary{Reason: v1beta1.ReasonRollingOut, Message: fmt.Sprintf("%d nodes have no available pod, %d nodes are not updated yet", left.unserved, left.inRange)}
	case left.kept > 0 && onDelete(p.Set):
		return conditions.Summary{Reason: v1beta1.ReasonOnDelete, Message: fmt.Sprintf("%d pods stay at an older revision until you delete them", left.kept)}
	case left.kept > 0 || left.withheld > 0:
		return conditions.Summary{Reason: v1beta1.ReasonPartitionReached, Message: partitionMessage(left)}
	}
	return conditions.Summary{Reason: v1beta1.ReasonComplete, Message: completeMessage(left)}
}

func completeMessage(left outdatedCount) string {
	if left.skipped == 0 {
		return "all pods are up to date and available"
	}
	return fmt.Sprintf("all pods are up to date and available; %d NotReady nodes are skipped (unreadyNodePolicy)", left.skipped)
}

func partitionMessage(left outdatedCount) string {
	if left.withheld == 0 {
		return fmt.Sprintf("partition and selector keep %d nodes at an older revision", left.kept)
	}
	return fmt.Sprintf("partition and selector keep %d nodes at an older revision and %d without a pod", left.kept, left.withheld)
}

// outdatedCount counts nodes that differ from the template.
type outdatedCount struct {
	inRange  int // the update is to reach them, or their pod returns to the revision before it
	kept     int // they stay at an older revision
	unserved int // they have no available pod and should
	withheld int // they get no pod for now, because of the partition
	skipped  int // they have no available pod, and unreadyNodePolicy leaves them out of account
}

func (p *pass) countOutdated() outdatedCount {
	var left outdatedCount
	var needing []*place
	for i := range p.places {
		l := &p.places[i]
		o := l.oldest()
		switch {
		case l.node == nil, o == nil && !l.ShouldRun:
		case p.isSkipped(l):
			left.skipped++
		case o == nil:
			needing = append(needing, l)
		case p.outdated(l, o):
			left.inRange++
		case !o.updated:
			left.kept++
			if l.ShouldRun && !l.isServing() {
				left.unserved++
			}
		case l.ShouldRun && !l.isServing():
			left.unserved++
		}
	}
	coming := len(p.withinPartition(needing))
	left.withheld = len(needing) - coming
	left.unserved += coming
	return left
}

// blockedReason is the reason of Progressing for the reason of a wait.
func blockedReason(reason string) string {
	switch reason {
	case v1beta1.ReasonBlockedByUnavailableNodes, action.WaitBudget:
		return reason
	case podupdate.WaitPreDeleteHook:
		return v1beta1.ReasonBlockedByPreDeleteHook
	}
	return v1beta1.ReasonRollingOut
}

// mainWait is the wait that the user should know of first: one that needs another actor to end before those that end
// by themselves. Of pods that hooks hold it names several. Waits for pods of nodes that are skipped do not count.
func (p *pass) mainWait(todo Plan) *action.Wait {
	todo.Waits = p.waitsThatCount(todo.Waits)
	var first *action.Wait
	rank := func(w *action.Wait) int {
		switch w.Reason {
		case podupdate.WaitPreDeleteHook:
			return 4
		case action.WaitRefused, action.WaitBudget, action.WaitNodeTooSmall:
			return 3
		case v1beta1.ReasonBlockedByUnavailableNodes:
			return 2
		}
		return 1
	}
	for i := range todo.Waits {
		if w := &todo.Waits[i]; first == nil || rank(w) > rank(first) {
			first = w
		}
	}
	switch {
	case first == nil:
		return nil
	case first.Reason == action.WaitRefused, first.Reason == action.WaitBudget, first.Reason == action.WaitNodeTooSmall:
		// which object is tried next means nothing
		return &action.Wait{Reason: first.Reason, Message: first.Message}
	case first.Reason == podupdate.WaitPreDeleteHook:
		return heldByHook(todo)
	}
	return first
}

// waitsThatCount leaves out the waits for pods of nodes that are left out of account.
func (p *pass) waitsThatCount(all []action.Wait) []action.Wait {
	if len(all) == 0 {
		return nil
	}
	skipped := map[string]bool{}
	for i := range p.places {
		if l := &p.places[i]; p.isSkipped(l) {
			for _, o := range l.pods {
				skipped[o.Pod.Name] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(w action.Wait) bool { return skipped[w.Object] })
}

// heldByHook is the wait for the hook of all pods that it holds.
func heldByHook(todo Plan) *action.Wait {
	all := &action.Wait{Reason: podupdate.WaitPreDeleteHook}
	names, n := "", 0
	for i := range todo.Waits {
		if w := &todo.Waits[i]; w.Reason == all.Reason {
			if n++; n <= mostNamed {
				names += ", " + w.Object
			}
		}
	}
	if n > mostNamed {
		names += ", and others"
	}
	all.Message = "the preDelete hook holds " + names[len(", "):]
	return all
}

// summary reports for kstatus whether the set is as its spec wants it, and if not, the pods that it waits for.
func (p *pass) summary(status v1beta1.DaemonSetStatus, todo Plan, done action.Failures) conditions.Summary {
	s := p.progress(todo)
	wait := p.mainWait(todo)
	healthy := status.NumberUnavailable == 0 || p.countOutdated().unserved == 0
	switch {
	case todo.Err != nil:
		return s
	case wait == nil && healthy && s.Reason == v1beta1.ReasonPaused:
		return conditions.DoneSummary(p.countOutdated().inRange)
	case wait == nil && healthy && s.Reason != v1beta1.ReasonRollingOut:
		return conditions.DoneSummary(0)
	case s.ReportFailures(done, p.firstTrouble()):
	default:
		s.Message = fmt.Sprintf("%d of %d nodes have an available pod, %d an updated one%s",
			status.NumberAvailable, status.DesiredNumberScheduled, status.UpdatedNumberScheduled, p.firstTrouble())
		if wait != nil {
			s.Reason = cmp.Or(wait.Reason, s.Reason)
			s.Message += "; " + wait.String()
		}
	}
	return s
}

// firstTrouble describes the trouble of the first pod in trouble, in words that follow others; empty where none is.
func (p *pass) firstTrouble() string {
	return podstate.FirstTrouble(len(p.pods), p.state)
}
