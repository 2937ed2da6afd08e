package conditions

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/plan/action"
)

// Get is the condition of the type, or nil.
func Get(list []workload.Condition, conditionType string) *workload.Condition {
	for i := range list {
		if list[i].Type == conditionType {
			return &list[i]
		}
	}
	return nil
}

// Set puts the condition into the list. Its times are set here: lastUpdateTime moves when status or
// reason change, lastTransitionTime when the status changes. With equal status and reason only the
// message is renewed.
func Set(list []workload.Condition, c workload.Condition, now metav1.Time) []workload.Condition {
	c.LastUpdateTime, c.LastTransitionTime = now, now
	list = slices.Clone(list)
	old := Get(list, c.Type)
	if old == nil {
		return append(list, c)
	}
	if old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
		if old.Reason == c.Reason {
			c.LastUpdateTime = old.LastUpdateTime
		}
	}
	*old = c
	return list
}

// Remove takes the condition of the type out of the list.
func Remove(list []workload.Condition, conditionType string) []workload.Condition {
	if Get(list, conditionType) == nil {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(c workload.Condition) bool { return c.Type == conditionType })
}

// SetFailure sets the condition to True with the text of an error, and takes it away where there is none.
func SetFailure(list []workload.Condition, conditionType, text string, now metav1.Time) []workload.Condition {
	if text == "" {
		return Remove(list, conditionType)
	}
	return Set(list, workload.Condition{
		Type: conditionType, Status: corev1.ConditionTrue, Reason: ReasonError, Message: text,
	}, now)
}

// Summary is the state of a workload for kstatus.
type Summary struct {
	// Done is true if everything is as the spec wants it.
	Done bool
	// Stalled is true if the workload needs help to get there.
	Stalled bool
	// Reason is one word for machines.
	Reason string
	// Message names the object or event that the workload waits for.
	Message string
}

// ReportFailures puts the failed writes of the pass into the summary, and the trouble of the pods. It returns false,
// and leaves the summary as it is, if none has failed.
func (s *Summary) ReportFailures(done action.Failures, trouble string) bool {
	switch {
	case done.ScaleError != "":
		s.Reason = ReasonFailedScale
		s.Message = done.ScaleError + trouble
	case done.UpdateError != "" && done.NodeTooSmall:
		s.Reason = ReasonNodeTooSmall
		s.Message = done.UpdateError + trouble
	case done.UpdateError != "":
		s.Reason = ReasonFailedUpdate
		s.Message = done.UpdateError + trouble
	case done.Budget != "":
		s.Reason = ReasonBlockedByBudget
		s.Message = done.Budget + trouble
	case done.Blocked != "":
		s.Reason = ReasonBlocked
		s.Message = done.Blocked + trouble
	default:
		return false
	}
	return true
}

// DoneSummary is the summary of a workload with all pods available; paused is the number of pods that wait for the end
// of a pause.
func DoneSummary(paused int) Summary {
	if paused == 0 {
		return Summary{
			Done:    true,
			Reason:  ReasonAvailable,
			Message: "all pods are up to date and available",
		}
	}
	return Summary{
		Done:    true,
		Reason:  ReasonPaused,
		Message: PausedMessage(paused),
	}
}

// PausedMessage is the message about the number of pods, at least one, that wait for the end of a pause.
func PausedMessage(pods int) string {
	if pods == 1 {
		return "the update is paused; 1 pod is not updated"
	}
	return fmt.Sprintf("the update is paused; %d pods are not updated", pods)
}

// Summarize writes the summary into Ready, Reconciling and Stalled. The latter two are present only
// while they are true.
func Summarize(list []workload.Condition, s Summary, now metav1.Time) []workload.Condition {
	c := workload.Condition{
		Status:  corev1.ConditionTrue,
		Reason:  s.Reason,
		Message: s.Message,
	}
	ready, other, absent := c, c, Stalled
	ready.Type, other.Type = Ready, Reconciling
	if s.Stalled {
		other.Type, absent = Stalled, Reconciling
	}
	if s.Done {
		list = Remove(Remove(list, Reconciling), Stalled)
		return Set(list, ready, now)
	}
	ready.Status = corev1.ConditionFalse
	list = Set(Remove(list, absent), other, now)
	return Set(list, ready, now)
}

// RefusedVerbs are the verbs of which conditions of these types have the text of an error, because the server refused
// such actions: creating, and updating in place. With another reason nothing was tried.
func RefusedVerbs(list []workload.Condition, failedScale, failedUpdate string) []action.Verb {
	var verbs []action.Verb
	for _, failed := range []struct {
		condition string
		verb      action.Verb
	}{{failedScale, action.Create}, {failedUpdate, action.UpdateInPlace}} {
		if c := Get(list, failed.condition); c != nil && c.Status == corev1.ConditionTrue && c.Reason == ReasonError {
			verbs = append(verbs, failed.verb)
		}
	}
	return verbs
}
