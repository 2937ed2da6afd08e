package inplace

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/flotilla-project/flotilla/core/plan/action"
)

// A kubelet that sees other resources of a container and a reason to restart it at once starts the container with its
// new resources and leaves the cgroup of the pod as it was (computePodActions of Kubernetes 1.36): the container does not
// start, or gets no more than before. So the two never go together:
//
//   - of a container that runs, the resize goes first, and its restart waits until the node has carried the resize out;
//   - of one that does not run the restart goes first, as nothing can be resized there, and the resize waits until the
//     status shows another run;
//   - so does a resize that comes while an earlier restart is under way;
//   - a limit is raised only of a container that runs, as the next run would be inside the old limit of the pod.

// resizesLast divides a batch: a resize waits for a restart if the container's restart is under way, or if the
// container does not run and is to be restarted or to get a higher limit.
func (ch changes) resizesLast(c *action.PodChange, s *State) (now, behind changes) {
	now, behind = ch, newChanges()
	now.resources = map[string]corev1.ResourceRequirements{}
	restarted := ch.restarted()
	for name, r := range ch.resources {
		down := !isRunning(c.Pod, name) && (restarted.Has(name) || raisesLimit(c.Pod, name, r) != "")
		if down || s.restartAwaited(c, name) != nil {
			behind.resources[name] = r
		} else {
			now.resources[name] = r
		}
	}
	return now, behind
}

// resizeHeld is the wait of the resizes that resizesLast has put behind, nil when there are none.
func (s *State) resizeHeld(c *action.PodChange) *Progress {
	if len(s.NextContainerResources) == 0 {
		return nil
	}
	restarted := s.next().restarted()
	for _, name := range slices.Sorted(maps.Keys(s.NextContainerResources)) {
		if restarted.Has(name) {
			continue
		}
		if p := s.restartAwaited(c, name); p != nil {
			return p
		}
	}
	return nil
}

// resizesFirst divides a batch that resizes a running container and restarts it as well: its resizes go ahead, and all
// else waits until the node has carried them out.
func (ch changes) resizesFirst(pod *corev1.Pod, onTheirWay sets.Set[string]) (ahead, behind changes) {
	ahead, behind = ch, newChanges()
	behind.images, behind.metadata, behind.restarts = ch.images, ch.metadata, ch.restarts
	for name := range ch.restarted() {
		_, written := ch.resources[name]
		if written && isRunning(pod, name) || onTheirWay.Has(name) && resizeUnderWay(pod, containerOf(pod, name)) {
			ahead = newChanges()
			ahead.resources = ch.resources
			return ahead, behind
		}
	}
	return ahead, newChanges()
}

// add takes in the changes of o, which are none of those that ch has.
func (ch changes) add(o changes) {
	maps.Copy(ch.images, o.images)
	maps.Copy(ch.resources, o.resources)
	maps.Copy(ch.metadata, o.metadata)
	maps.Copy(ch.restarts, o.restarts)
}

// resizeUnderWay reports whether the node can be expected to give the container its resources now: the container runs,
// or is about to run with the spec that the kubelet knew before, and the node has neither put that off nor failed.
func resizeUnderWay(pod *corev1.Pod, c *corev1.Container) bool {
	if c == nil || !isRunning(pod, c.Name) && !isStarting(pod, c.Name) || awaitResources(pod, c) == nil {
		return false
	}
	return !observed(pod) || !givenUp(pod)
}

// givenUp reports whether the node has put a resize off, can never carry it out, or has failed to.
func givenUp(pod *corev1.Pod) bool {
	inProgress := trueCondition(pod, corev1.PodResizeInProgress)
	return trueCondition(pod, corev1.PodResizePending) != nil || inProgress != nil && inProgress.Reason == corev1.PodReasonError
}

// resizesUnderWay are the recorded containers that the node is about to give their resources.
func (s *State) resizesUnderWay(pod *corev1.Pod) sets.Set[string] {
	names := sets.New[string]()
	for _, b := range s.ContainerBatchesRecord {
		for _, name := range b.Containers {
			if resizeUnderWay(pod, containerOf(pod, name)) {
				names.Insert(name)
			}
		}
	}
	return names
}

// raisesLimit is the name of the resource of which r gives the container a higher limit than it has; empty where there is
// none.
func raisesLimit(pod *corev1.Pod, container string, r corev1.ResourceRequirements) corev1.ResourceName {
	if c := containerOf(pod, container); c != nil {
		return raisedLimit(c.Resources, r)
	}
	return ""
}

// isDown reports whether the container does not run, and nothing is known that is about to start it.
func (s *State) isDown(c *action.PodChange, container string) bool {
	return !isRunning(c.Pod, container) && !isStarting(c.Pod, container) && (s == nil || s.restartAwaited(c, container) == nil)
}

func isRunning(pod *corev1.Pod, container string) bool {
	status := statusOf(pod, container)
	return status != nil && status.State.Running != nil
}

// isStarting reports whether the kubelet is about to run the container again and nothing is known that prevents it.
func isStarting(pod *corev1.Pod, container string) bool {
	status := statusOf(pod, container)
	return status != nil && status.ContainerID != "" && status.State.Waiting != nil && status.State.Waiting.Reason == "ContainerCreating"
}
