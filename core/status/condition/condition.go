package condition

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition is what the condition types of all kinds have in common. A kind whose type has no
// LastUpdateTime leaves it out when it converts.
type Condition struct {
	// Type names the condition.
	Type string
	// Status is True, False or Unknown.
	Status corev1.ConditionStatus
	// Reason is one word for machines.
	Reason string
	// Message is one sentence for people.
	Message string
	// LastTransitionTime is when Status changed last.
	LastTransitionTime metav1.Time
	// LastUpdateTime is when anything of the condition changed last.
	LastUpdateTime metav1.Time
}

// Set puts a condition into the list, in place of the one with its type if there is one, and
// returns the list. LastTransitionTime stays unless the status changes; a condition that says what
// it said before stays whole. The given list is not changed.
func Set(list []Condition, want Condition, now metav1.Time) []Condition {
	want.LastTransitionTime, want.LastUpdateTime = now, now
	i := slices.IndexFunc(list, func(c Condition) bool { return c.Type == want.Type })
	if i < 0 {
		return append(slices.Clip(list), want)
	}
	old := list[i]
	if old.Status == want.Status {
		want.LastTransitionTime = old.LastTransitionTime
		if old.Reason == want.Reason && old.Message == want.Message {
			return list
		}
	}
	list = slices.Clone(list)
	list[i] = want
	return list
}

// Remove is the list without the condition of the type. The given list is not changed.
func Remove(list []Condition, conditionType string) []Condition {
	i := slices.IndexFunc(list, func(c Condition) bool { return c.Type == conditionType })
	if i < 0 {
		return list
	}
	return slices.Delete(slices.Clone(list), i, i+1)
}

// Find is the condition of the type, or nil.
func Find(list []Condition, conditionType string) *Condition {
	for i := range list {
		if list[i].Type == conditionType {
			return &list[i]
		}
	}
	return nil
}

// Convert turns a kind's own list into the common form, or back.
func Convert[From, To any](list []From, one func(From) To) []To {
	if list == nil {
		return nil
	}
	converted := make([]To, len(list))
	for i := range list {
		converted[i] = one(list[i])
	}
	return converted
}
