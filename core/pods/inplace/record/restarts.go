package record

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/inplace/annotation"
	"github.com/flotilla-project/flotilla/core/pods/inplace/running"
)

// RestartsUnderWay returns the containers, by name, that an in-place update asks the node agent to restart although
// nothing about them changes, with the IDs of those that are to be stopped. A container with another ID has been
// restarted.
func RestartsUnderWay(pod *corev1.Pod) map[string]string {
	text := pod.Annotations[contract.InPlaceUpdateStateAnnotation]
	if !strings.Contains(text, `"restarts`) {
		return nil
	}
	s, err := annotation.Decode[State](contract.InPlaceUpdateStateAnnotation, text)
	if err != nil {
		return nil
	}
	return s.PendingRestarts(pod)
}

// WasToAskOtherwise reports whether a value of the annotation was planned for the pod, other than the template's. It is
// not on the pod, and nothing was restarted for it.
func (p Prior) WasToAskOtherwise(t *corev1.PodTemplateSpec) bool {
	if p.Grace == nil {
		return false
	}
	planned := []Metadata{p.Plain.Metadata}
	planned = slices.AppendSeq(planned, maps.Values(p.Grace.ContainerRefMetadata))
	return slices.ContainsFunc(planned, func(m Metadata) bool {
		value, changes := m.Annotations[contract.RestartInPlaceAnnotation]
		return changes && ptr.Deref(value, "") != t.Annotations[contract.RestartInPlaceAnnotation]
	})
}

// Owed are the restarts that the pod's present value of the annotation still asks for, with the IDs of the containers. A
// plan that was not written has added none.
func (p Prior) Owed(pod *corev1.Pod) map[string]string {
	owed := map[string]string{}
	switch {
	case p.Grace != nil:
		maps.Copy(owed, p.Grace.RestartsOwed)
	case p.State != nil:
		for _, name := range p.State.NextContainerRestarts {
			owed[name] = running.ID(pod, name)
		}
		maps.Copy(owed, p.Restarts)
	}
	maps.DeleteFunc(owed, func(name, id string) bool { return id == "" || running.ID(pod, name) != id })
	return owed
}

// PendingRestarts are the restarts that the pod's status does not show yet.
func (s *State) PendingRestarts(pod *corev1.Pod) map[string]string {
	var pending map[string]string
	for name, id := range s.Restarts {
		if running.ID(pod, name) != id {
			continue
		}
		if pending == nil {
			pending = map[string]string{}
		}
		pending[name] = id
	}
	return pending
}

// RecordRestarts asks for the restart of containers that were started.
func (s *State) RecordRestarts(pod *corev1.Pod, names sets.Set[string]) {
	for name := range names {
		s.SetRestart(name, running.ID(pod, name))
	}
}

// SetRestart asks for the restart of the container with the ID.
func (s *State) SetRestart(name, id string) {
	if s.Restarts == nil {
		s.Restarts = map[string]string{}
	}
	s.Restarts[name] = id
}
