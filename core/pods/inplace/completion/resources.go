package completion

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/inplace/quantity"
	"github.com/flotilla-project/flotilla/core/pods/inplace/record"
	"github.com/flotilla-project/flotilla/core/pods/inplace/running"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// AwaitResources is the wait for the container's resources, nil when it runs with the resources of the spec. The status
// of a container that does not run repeats the resources that it is to get.
func AwaitResources(pod *corev1.Pod, c *corev1.Container) *Progress {
	want := quantity.Effective(c.Resources)
	status := running.Status(pod, c.Name)
	switch {
	case quantity.None(want):
		return nil
	case !Observed(pod):
		return WaitFor(ReasonKubelet, "the kubelet has not observed the current spec of the pod yet")
	case running.Is(pod, c.Name) && status.Resources != nil && quantity.None(quantity.Missing(*status.Resources, want)):
		return nil
	}
	p := WaitFor(ReasonResize, "container %s has yet to get its resources", c.Name)
	if !running.Is(pod, c.Name) {
		p.Message = fmt.Sprintf("container %s has yet to run with its resources", c.Name)
	}
	said := trueCondition(pod, corev1.PodResizePending)
	if said == nil {
		said = trueCondition(pod, corev1.PodResizeInProgress)
	}
	if said != nil {
		p.Reason += said.Reason
		if said.Message != "" {
			p.Message += ": " + said.Message
		}
	}
	return p
}

// ResizedBefore names the containers that do not have the resources of their spec yet, if the changes leave these
// resources as they are.
func ResizedBefore(pod *corev1.Pod, containers sets.Set[string], ch record.Changes) sets.Set[string] {
	names := sets.New[string]()
	for name := range containers {
		_, written := ch.Resources[name]
		if c := running.Container(pod, name); c != nil && !written && AwaitResources(pod, c) != nil {
			names.Insert(name)
		}
	}
	return names
}

// RestartsToCome reports whether the kubelet will restart one of the resized containers.
func RestartsToCome(pod *corev1.Pod, resized sets.Set[string]) bool {
	for name := range resized {
		c := running.Container(pod, name)
		status := running.Status(pod, name)
		has := corev1.ResourceRequirements{}
		if c == nil {
			continue // the pod's record names one that it does not have
		}
		if status != nil && status.Resources != nil {
			has = *status.Resources
		}
		if quantity.Restarts(c, quantity.Missing(has, quantity.Effective(c.Resources))) {
			return true
		}
	}
	return false
}

func trueCondition(pod *corev1.Pod, t corev1.PodConditionType) *corev1.PodCondition {
	if c := podstate.Condition(pod, t); c != nil && c.Status == corev1.ConditionTrue {
		return c
	}
	return nil
}

// resizeHeld is the wait of the resizes that a batch has put behind its restarts, nil when there are none.
func resizeHeld(s *record.State, c *action.PodChange) *Progress {
	if len(s.NextContainerResources) == 0 {
		return nil
	}
	restarted := s.Next().Restarted()
	for _, name := range slices.Sorted(maps.Keys(s.NextContainerResources)) {
		if restarted.Has(name) {
			continue
		}
		if p := RestartAwaited(s, c, name); p != nil {
			return p
		}
	}
	return nil
}

// ResizeUnderWay reports whether the node can be expected to give the container its resources now: the container runs,
// or is about to run with the spec that the kubelet knew before, and the node has neither put that off nor failed.
func ResizeUnderWay(pod *corev1.Pod, c *corev1.Container) bool {
	if c == nil || !running.Is(pod, c.Name) && !running.Starting(pod, c.Name) || AwaitResources(pod, c) == nil {
		return false
	}
	return !Observed(pod) || !GivenUp(pod)
}

// GivenUp reports whether the node has put a resize off, can never carry it out, or has failed to.
func GivenUp(pod *corev1.Pod) bool {
	inProgress := trueCondition(pod, corev1.PodResizeInProgress)
	return trueCondition(pod, corev1.PodResizePending) != nil || inProgress != nil && inProgress.Reason == corev1.PodReasonError
}

// ResizesUnderWay are the recorded containers that the node is about to give their resources.
func ResizesUnderWay(s *record.State, pod *corev1.Pod) sets.Set[string] {
	names := sets.New[string]()
	for _, b := range s.ContainerBatchesRecord {
		for _, name := range b.Containers {
			if ResizeUnderWay(pod, running.Container(pod, name)) {
				names.Insert(name)
			}
		}
	}
	return names
}
