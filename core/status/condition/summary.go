package condition

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The vocabulary that kstatus reads, and with it kubectl wait, Helm, Flux and Argo CD.
const (
	// Ready is True when the world is as the spec wants it.
	Ready = "Ready"
	// Reconciling is True while the controller works towards that; otherwise it is absent.
	Reconciling = "Reconciling"
	// Stalled is True when nothing goes on without a change by somebody; otherwise it is absent.
	Stalled = "Stalled"
)

// Summary is what Ready, Reconciling and Stalled follow from.
type Summary struct {
	// Complete says that the world is as the spec wants it.
	Complete bool
	// Stuck says that nothing goes on without a change by somebody, such as a spec that cannot be.
	Stuck bool
	// Reason is one word for machines: what is being done, or what is in the way. Empty stands for
	// the name of the condition that is True.
	Reason string
	// Message is one sentence for people.
	Message string
}

// Summarize puts Ready, Reconciling and Stalled into the list:
//
//	           Ready  Reconciling  Stalled
//	complete   True   absent       absent
//	stuck      False  absent       True
//	otherwise  False  True         absent
//
// A summary that claims both is stuck.
func Summarize(list []Condition, s Summary, now metav1.Time) []Condition {
	ready, cause := corev1.ConditionFalse, Reconciling
	switch {
	case s.Stuck:
		cause = Stalled
	case s.Complete:
		ready, cause = corev1.ConditionTrue, Ready
	}
	reason := s.Reason
	if reason == "" {
		reason = cause
	}
	list = Set(list, Condition{Type: Ready, Status: ready, Reason: reason, Message: s.Message}, now)
	for _, abnormal := range []string{Reconciling, Stalled} {
		if abnormal == cause {
			list = Set(list, Condition{Type: abnormal, Status: corev1.ConditionTrue, Reason: reason, Message: s.Message}, now)
		} else {
			list = Remove(list, abnormal)
		}
	}
	return list
}
