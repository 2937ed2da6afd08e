package record

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// Prior is the update in the pod's annotations.
type Prior struct {
	State *State
	Grace *Grace
	Plain Plain // of the grace
	// Restarts are those under way, as in State.
	Restarts map[string]string
	Err      error // why something is unreadable
}

// Read reads the update from the annotations that the pod has with the change.
func Read(c *action.PodChange) Prior {
	var p Prior
	var err error
	if p.State, err = ReadState(c); err != nil {
		p.State, p.Err = nil, err
	}
	if p.State != nil && !IsInService(c) {
		p.Restarts = p.State.PendingRestarts(c.Pod)
	}
	if p.Grace, err = readGrace(c); err != nil {
		p.Grace, p.Err = nil, err
	}
	if p.Grace != nil {
		if p.Plain, err = parsePlainChange(p.Grace.MetadataPatch); err != nil {
			p.Grace, p.Err = nil, err
		}
	}
	return p
}

// Unreadable reports whether the goal of the pod's update is unknown. It is known with a readable plan in grace.
func (p Prior) Unreadable() bool { return p.Err != nil && p.Grace == nil }

// NothingUnderWay reports, without reading the pod's annotations, that no update is under way. It applies to a pod with
// condition InPlaceUpdateReady True: the condition becomes False with the first write of an update that interrupts and
// True with its end. Updates that do not interrupt leave marks in the text, and so do updates of pods that serve as
// they are.
func NothingUnderWay(c *action.PodChange) bool {
	text := Current(c, contract.InPlaceUpdateStateAnnotation, contract.LegacyInPlaceUpdateStateAnnotation)
	if Current(c, contract.InPlaceUpdateGraceAnnotation, contract.LegacyInPlaceUpdateGraceAnnotation) != "" {
		return false
	}
	if text == "" {
		return !podstate.HeldByUpdate(c.Pod)
	}
	return IsInService(c) && strings.HasPrefix(text, "{") && !strings.Contains(text, `"next`) && !strings.Contains(text, `"updateResources":true`) &&
		!strings.Contains(text, `"restarts`) && !strings.Contains(text, `"raisedLimits`)
}

// IsInService reports whether the pod has readiness gate InPlaceUpdateReady with condition True.
func IsInService(c *action.PodChange) bool {
	if !podstate.HasReadinessGate(c.Pod, contract.InPlaceUpdateReady) {
		return false
	}
	condition := c.Condition(contract.InPlaceUpdateReady)
	return condition != nil && condition.Status == corev1.ConditionTrue
}

// ReadPlanned is Read for a pod that may have a plan that is not written yet, or restarts under way, or may have
// been resized for another revision; for others it reads nothing.
func ReadPlanned(c *action.PodChange) Prior {
	text := Current(c, contract.InPlaceUpdateStateAnnotation, contract.LegacyInPlaceUpdateStateAnnotation)
	grace := Current(c, contract.InPlaceUpdateGraceAnnotation, contract.LegacyInPlaceUpdateGraceAnnotation)
	if len(c.Pod.ManagedFields) == 0 && grace == "" && (text == "" || strings.HasPrefix(text, "{") && !strings.Contains(text, `"next`) && !strings.Contains(text, `"restarts`)) {
		return Prior{}
	}
	return Read(c)
}

// IsPlanned reports whether an update of the pod is planned: it has taken the pod out of service and changed nothing yet.
func IsPlanned(pod *corev1.Pod) bool {
	return pod.Annotations[contract.InPlaceUpdateGraceAnnotation] != "" || pod.Annotations[contract.LegacyInPlaceUpdateGraceAnnotation] != ""
}
