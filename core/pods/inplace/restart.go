package inplace

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
)

// How a container is known to have been restarted.
//
// The record names it with the ID that the status shows when the restart is written. The node agent stops the container
// with that ID and no other, so that one restart stays one, even if it is requested several times or a container
// crashes in between. A container that crashes before it is stopped has been restarted, too. If its image changes as
// well, the kubelet replaces it; the node agent waits for that.

// ParseRestart reads the value of contract.RestartInPlaceAnnotation: the names of containers and native sidecars, all of
// them where there are none. It is false for a value that asks for nothing.
func ParseRestart(value string) (containers []string, ok bool) {
	words := strings.Fields(value)
	if len(words) == 0 {
		return nil, false
	}
	return words[1:], true
}

// RestartsUnderWay returns the containers, by name, that an in-place update asks the node agent to restart although
// nothing about them changes, with the IDs of those that are to be stopped. A container with another ID has been
// restarted.
func RestartsUnderWay(pod *corev1.Pod) map[string]string {
	text := pod.Annotations[contract.InPlaceUpdateStateAnnotation]
	if !strings.Contains(text, `"restarts`) {
		return nil
	}
	s, err := decode[State](contract.InPlaceUpdateStateAnnotation, text)
	if err != nil {
		return nil
	}
	return s.pendingRestarts(pod)
}

// restartNames are the containers and native sidecars that the template's annotation names.
func restartNames(t *corev1.PodTemplateSpec) sets.Set[string] {
	names, ok := ParseRestart(t.Annotations[contract.RestartInPlaceAnnotation])
	all := sets.New[string]()
	for _, c := range podspec.LongRunning(&t.Spec) {
		all.Insert(c.Name)
	}
	switch {
	case !ok:
		return nil
	case len(names) == 0:
		return all
	}
	return all.Intersection(sets.New(names...))
}

// restarts are the containers that the update restarts as they are, unless they were restarted already.
func (u *Update) restarts() sets.Set[string] {
	if !u.options.EnvFromMetadata {
		return nil
	}
	return restartNames(u.template)
}

func (s *scope) addRestarts(from, to *corev1.PodTemplateSpec, o Options) {
	if o.EnvFromMetadata && from.Annotations[contract.RestartInPlaceAnnotation] != to.Annotations[contract.RestartInPlaceAnnotation] {
		s.restarts = s.restarts.Union(restartNames(to))
	}
}

// wasToAskOtherwise reports whether a value of the annotation was planned for the pod, other than the template's. It is
// not on the pod, and nothing was restarted for it.
func (p prior) wasToAskOtherwise(t *corev1.PodTemplateSpec) bool {
	if p.grace == nil {
		return false
	}
	planned := []Metadata{p.plain.Metadata}
	planned = slices.AppendSeq(planned, maps.Values(p.grace.ContainerRefMetadata))
	return slices.ContainsFunc(planned, func(m Metadata) bool {
		value, changes := m.Annotations[contract.RestartInPlaceAnnotation]
		return changes && ptr.Deref(value, "") != t.Annotations[contract.RestartInPlaceAnnotation]
	})
}

// hasAskedFor reports whether the pod has the template's value of the annotation: the named containers were restarted,
// or their restart is owed.
func hasAskedFor(pod *corev1.Pod, t *corev1.PodTemplateSpec) bool {
	return pod.Annotations[contract.RestartInPlaceAnnotation] == t.Annotations[contract.RestartInPlaceAnnotation]
}

// owed are the restarts that the pod's present value of the annotation still asks for, with the IDs of the containers. A
// plan that was not written has added none.
func (p prior) owed(pod *corev1.Pod) map[string]string {
	owed := map[string]string{}
	switch {
	case p.grace != nil:
		maps.Copy(owed, p.grace.RestartsOwed)
	case p.state != nil:
		for _, name := range p.state.NextContainerRestarts {
			owed[name] = runningID(pod, name)
		}
		maps.Copy(owed, p.restarts)
	}
	maps.DeleteFunc(owed, func(name, id string) bool { return id == "" || runningID(pod, name) != id })
	return owed
}

// byAgent names the containers that the node agent restarts. The kubelet replaces the containers that get another
// image, too.
func (ch changes) byAgent() sets.Set[string] {
	return ch.restarts.Difference(sets.KeySet(ch.images)).Union(sets.KeySet(ch.metadata))
}

// runningID is the ID of the container in the pod's status, empty when it was never started.
func runningID(pod *corev1.Pod, name string) string {
	if status := statusOf(pod, name); status != nil && containerOf(pod, name) != nil {
		return status.ContainerID
	}
	return ""
}

// pendingRestarts are the restarts that the pod's status does not show yet.
func (s *State) pendingRestarts(pod *corev1.Pod) map[string]string {
	var pending map[string]string
	for name, id := range s.Restarts {
		if runningID(pod, name) != id {
			continue
		}
		if pending == nil {
			pending = map[string]string{}
		}
		pending[name] = id
	}
	return pending
}

// carryRestarts continues with the earlier restarts that are still wanted, and returns their containers.
func (s *State) carryRestarts(before prior, wanted sets.Set[string]) sets.Set[string] {
	carried := wanted.Intersection(sets.KeySet(before.restarts))
	for name := range carried {
		s.setRestart(name, before.restarts[name])
	}
	return carried
}

// recordRestarts asks for the restart of containers that were started.
func (s *State) recordRestarts(pod *corev1.Pod, names sets.Set[string]) {
	for name := range names {
		s.setRestart(name, runningID(pod, name))
	}
}

func (s *State) setRestart(name, id string) {
	if s.Restarts == nil {
		s.Restarts = map[string]string{}
	}
	s.Restarts[name] = id
}

// awaitRestart is the wait for the container's restart, nil when it is done.
func (s *State) awaitRestart(pod *corev1.Pod, name string, now time.Time) *Progress {
	if id := runningID(pod, name); containerOf(pod, name) == nil || id != "" && id != s.Restarts[name] {
		return nil
	}
	if _, known := startedWith(pod, name); !known && runningID(pod, name) != "" {
		return s.awaitAgent(pod, name, now, waitFor(ReasonNodeAgentMissing, "the node agent has not reported container %s yet", name))
	}
	return s.awaitAgent(pod, name, now, waitFor(ReasonContainer, "container %s has not been restarted yet", name))
}

// restartAwaited is the wait for the container's restart by an earlier write, nil when no write restarts it or it has
// been seen to have restarted.
func (s *State) restartAwaited(c *action.PodChange, name string) *Progress {
	if isInService(c) {
		return nil
	}
	if _, changed := s.LastContainerStatuses[name]; changed {
		if p := awaitImage(c.Pod, s, name, c.Now.Time); p != nil {
			return p
		}
	}
	if _, asked := s.Restarts[name]; asked {
		if p := s.awaitRestart(c.Pod, name, c.Now.Time); p != nil {
			return p
		}
	}
	if container := containerOf(c.Pod, name); container != nil {
		return s.awaitOtherEnv(c, container)
	}
	return nil
}
