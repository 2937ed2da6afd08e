package model

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/workloads/ownership"
)

// StatusFields point to the fields that the statuses of all kinds have.
type StatusFields struct {
	ObservedGeneration              *int64
	LabelSelector                   *string
	CurrentRevision, UpdateRevision *string
	CollisionCount                  **int32
}

// SetStatus sets the fields for a set with this selector. Fields with unknown values in this pass stay as they are.
func (s *Snapshot[W]) SetStatus(selector *metav1.LabelSelector, status StatusFields) {
	*status.ObservedGeneration = s.Set.GetGeneration()
	*status.LabelSelector = ownership.SelectorText(selector, *status.LabelSelector)
	s.Chosen.Status(status.CurrentRevision, status.UpdateRevision, status.CollisionCount)
}
