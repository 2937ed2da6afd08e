package plan

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/workloads/conditions"
	"github.com/flotilla-project/flotilla/core/workloads/model"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// Status is the next status of the set, counted from the pods as they were before the plan's writes.
func Status(s Snapshot, todo Plan, done action.Failures) v1beta1.CloneSetStatus {
	p := newPass(s)
	status := *s.Set.Status.DeepCopy()
	p.SetStatus(s.Set.Spec.Selector, model.StatusFields{
		ObservedGeneration: &status.ObservedGeneration,
		LabelSelector:      &status.LabelSelector,
		CurrentRevision:    &status.CurrentRevision,
		UpdateRevision:     &status.UpdateRevision,
		CollisionCount:     &status.CollisionCount,
	})
	p.countInto(&status)
	if !p.numbers.partitioned && status.UpdatedReplicas == status.Replicas && status.Replicas == p.numbers.replicas {
		status.CurrentRevision = status.UpdateRevision
	}
	now := metav1.NewTime(s.Now)
	clock := progressDeadline(s.Set) > 0 && madeProgress(s.Set.Status, status) // it starts again, and no later pass would see that
	if !done.NoProgress || s.Set.Status.ObservedGeneration != s.Set.Generation || clock || !reported(status.Conditions, done) {
		status.Conditions = p.nextConditions(status, todo, done, now)
	}
	return status
}

// reported reports whether the conditions show the failures. They do not if an action is refused whose earlier tries met
// only conflicts, or if it was refused before an edit that ended the report of it.
func reported(list []workload.Condition, done action.Failures) bool {
	shows := func(conditionType, failure string) bool {
		c := conditions.Get(list, conditionType)
		return failure == "" || c != nil && strings.HasPrefix(c.Message, failure)
	}
	if done.ScaleError == "" && done.UpdateError == "" {
		return shows(conditions.Ready, done.Budget)
	}
	return shows(v1beta1.CloneSetFailedScale, done.ScaleError) && shows(v1beta1.CloneSetFailedUpdate, done.UpdateError)
}

func (p *pass) countInto(status *v1beta1.CloneSetStatus) {
	status.Replicas = int32(len(p.pods))
	status.ReadyReplicas = 0
	status.AvailableReplicas = 0
	status.UpdatedReplicas = 0
	status.UpdatedReadyReplicas = 0
	status.UpdatedAvailableReplicas = 0
	for i := range p.pods {
		o := &p.pods[i]
		updated := int32(0)
		if o.updated {
			updated = 1
		}
		status.UpdatedReplicas += updated
		if o.Ready {
			status.ReadyReplicas++
			status.UpdatedReadyReplicas += updated
		}
		if o.Available {
			status.AvailableReplicas++
			status.UpdatedAvailableReplicas += updated
		}
	}
	status.ExpectedUpdatedReplicas = p.numbers.replicas - p.numbers.partition
}

func (p *pass) nextConditions(status v1beta1.CloneSetStatus, todo Plan, done action.Failures, now metav1.Time) []workload.Condition {
	list := status.Conditions
	switch w := claimlessPods(todo); {
	case done.ScaleError == "" && w != nil:
		list = conditions.Set(list, workload.Condition{Type: v1beta1.CloneSetFailedScale, Status: corev1.ConditionTrue, Reason: w.Reason, Message: w.Message}, now)
	case done.ScaleError != "" || !p.creationFailed() || createsPods(todo): // else nothing was tried
		list = conditions.SetFailure(list, v1beta1.CloneSetFailedScale, done.ScaleError, now)
	}
	list = conditions.SetFailure(list, v1beta1.CloneSetFailedUpdate, done.UpdateError, now)
	list = setScaleUpLimited(list, scaleUpLimit(todo), now)
	if deadline := progressDeadline(p.Set); deadline == 0 {
		list = conditions.Remove(list, v1beta1.CloneSetProgressing)
	} else {
		list = conditions.Set(list, p.progress(status, deadline), now)
		if p.Set.Status.UpdateRevision != status.UpdateRevision || madeProgress(p.Set.Status, status) {
			conditions.Get(list, v1beta1.CloneSetProgressing).LastUpdateTime = now
		}
	}
	return conditions.Summarize(list, p.summary(status, list, todo, done), now)
}

func createsPods(todo Plan) bool {
	for _, step := range todo.Steps {
		for _, a := range step.Actions {
			if _, isPod := a.Object.(*corev1.Pod); isPod && a.Verb == action.Create {
				return true
			}
		}
	}
	return false
}

// madeProgress reports whether pods have come nearer to the update revision since the last status: more of them have it,
// are ready at it or are available at it.
func madeProgress(old, status v1beta1.CloneSetStatus) bool {
	return status.UpdatedReplicas > old.UpdatedReplicas || status.UpdatedReadyReplicas > old.UpdatedReadyReplicas ||
		status.UpdatedAvailableReplicas > old.UpdatedAvailableReplicas
}

// progressDeadline is spec.progressDeadlineSeconds, 0 without one.
func progressDeadline(set *v1beta1.CloneSet) time.Duration {
	if d := set.Spec.ProgressDeadlineSeconds; d != nil && *d != math.MaxInt32 {
		return time.Duration(*d) * time.Second
	}
	return 0
}

// progress is condition Progressing. The first rule that matches wins. The clock of the deadline starts when the
// reason becomes CloneSetUpdated, and again with each progress and each update revision; once the deadline is
// exceeded, only availability, a pause, the partition or a new revision end that.
func (p *pass) progress(status v1beta1.CloneSetStatus, deadline time.Duration) workload.Condition {
	c := workload.Condition{Type: v1beta1.CloneSetProgressing, Status: corev1.ConditionTrue}
	old := conditions.Get(p.Set.Status.Conditions, v1beta1.CloneSetProgressing)
	sameRevision := p.Set.Status.UpdateRevision == status.UpdateRevision
	exceeded := old != nil && sameRevision && (old.Reason == v1beta1.ReasonDeadlineExceeded ||
		old.Reason == v1beta1.ReasonUpdated && !p.Now.Before(old.LastUpdateTime.Add(deadline)) && !madeProgress(p.Set.Status, status))
	switch {
	case p.complete(status):
		c.Reason = v1beta1.ReasonAvailable
		c.Message = "CloneSet is available"
	case rollingUpdate(p.Set).Paused:
		c.Reason = v1beta1.ReasonPaused
		c.Message = "CloneSet is paused"
	case p.atPartition(status):
		c.Reason = v1beta1.ReasonPartitionAvailable
		c.Message = "CloneSet has been paused due to partition ready"
	case exceeded:
		c.Status = corev1.ConditionFalse
		c.Reason = v1beta1.ReasonDeadlineExceeded
		c.Message = fmt.Sprintf("CloneSet revision %s has timed out progressing", status.UpdateRevision)
	default:
		c.Reason = v1beta1.ReasonUpdated
		c.Message = "CloneSet is progressing"
	}
	return c
}

// atPartition reports whether the update has come as far as the partition lets it, and pods that it keeps are there.
func (p *pass) atPartition(status v1beta1.CloneSetStatus) bool {
	keeps := status.ExpectedUpdatedReplicas < status.Replicas || p.numbers.replicas == 0
	return p.numbers.partitioned && keeps && status.ExpectedUpdatedReplicas <= status.UpdatedAvailableReplicas
}

// complete reports whether all pods exist, are at the one revision and available.
func (p *pass) complete(status v1beta1.CloneSetStatus) bool {
	return status.CurrentRevision == status.UpdateRevision && status.Replicas == p.numbers.replicas &&
		status.UpdatedReplicas == status.Replicas && status.UpdatedAvailableReplicas == status.Replicas
}

// untilDeadline is the time until the progress deadline must be checked; 0 while its clock does not run. The write that
// starts the clock brings the set back.
func untilDeadline(s Snapshot) time.Duration {
	deadline := progressDeadline(s.Set)
	c := conditions.Get(s.Set.Status.Conditions, v1beta1.CloneSetProgressing)
	if deadline == 0 || c == nil || c.Reason != v1beta1.ReasonUpdated {
		return 0
	}
	return max(c.LastUpdateTime.Add(deadline).Sub(s.Now), 0) + time.Second
}

// summary reports for kstatus whether the set is as its spec wants it, and if not, the pods that it waits for.
func (p *pass) summary(status v1beta1.CloneSetStatus, list []workload.Condition, todo Plan, done action.Failures) conditions.Summary {
	if todo.Err != nil {
		return conditions.Summary{
			Stalled: true,
			Reason:  v1beta1.ReasonInvalidSpec,
			Message: todo.Err.Error(),
		}
	}
	r := rollingUpdate(p.Set)
	updates := !r.Paused && !onDelete(p.Set)
	if len(todo.Waits) == 0 && status.Replicas == p.numbers.replicas && status.AvailableReplicas == status.Replicas &&
		(!updates || status.UpdatedReplicas >= status.ExpectedUpdatedReplicas) {
		return conditions.DoneSummary(p.pausedPods())
	}
	trouble := p.firstTrouble()
	s := conditions.Summary{Reason: v1beta1.ReasonProgressing, Message: fmt.Sprintf("%d of %d pods available, %d of %d updated%s",
		status.AvailableReplicas, p.numbers.replicas, status.UpdatedReplicas, status.ExpectedUpdatedReplicas, trouble)}
	if !s.ReportFailures(done, trouble) && len(todo.Waits) > 0 {
		s.Reason = todo.Waits[0].Reason
		s.Message += "; " + todo.Waits[0].String()
	}
	if limit := scaleUpLimit(todo); limit != nil && s.Reason != limit.Reason {
		s.Message += "; " + limit.String()
	}
	if w := claimlessPods(todo); w != nil {
		s.Stalled, s.Reason = true, w.Reason
	}
	if isPastDeadline(list) {
		s.Stalled, s.Reason = true, v1beta1.ReasonDeadlineExceeded
		s.Message += fmt.Sprintf("; the progress deadline of %ds has passed", *p.Set.Spec.ProgressDeadlineSeconds)
	}
	return s
}

// isPastDeadline reports whether spec.progressDeadlineSeconds have passed without progress.
func isPastDeadline(list []workload.Condition) bool {
	c := conditions.Get(list, v1beta1.CloneSetProgressing)
	return c != nil && c.Reason == v1beta1.ReasonDeadlineExceeded
}

// firstTrouble describes the trouble of the oldest pod in trouble, in words that follow others; empty where none is.
func (p *pass) firstTrouble() string {
	return podstate.FirstTrouble(len(p.pods), p.state)
}

// pausedPods is how many pods would move to another revision if the set were not paused.
func (p *pass) pausedPods() int {
	if !rollingUpdate(p.Set).Paused {
		return 0
	}
	n := p.currentBalance().updateNum
	return int(max(n, -n))
}

// setScaleUpLimited sets condition ScaleUpLimited to True with the limit, and takes it away where there is none.
func setScaleUpLimited(list []workload.Condition, limit *action.Wait, now metav1.Time) []workload.Condition {
	if limit == nil {
		return conditions.Remove(list, v1beta1.CloneSetScaleUpLimited)
	}
	return conditions.Set(list, workload.Condition{
		Type: v1beta1.CloneSetScaleUpLimited, Status: corev1.ConditionTrue, Reason: limit.Reason, Message: limit.Message,
	}, now)
}

// scaleUpLimit is the wait for scaleStrategy.maxUnavailable, or nil.
func scaleUpLimit(todo Plan) *action.Wait { return waitWith(todo, WaitScaleLimit) }

// claimlessPods is the wait of pods that cannot be created without the claim template that was removed, or nil.
func claimlessPods(todo Plan) *action.Wait { return waitWith(todo, WaitClaimTemplateRemoved) }

// waitWith is the first wait for the reason, or nil.
func waitWith(todo Plan, reason string) *action.Wait {
	i := slices.IndexFunc(todo.Waits, func(w action.Wait) bool { return w.Reason == reason })
	if i < 0 {
		return nil
	}
	return &todo.Waits[i]
}
