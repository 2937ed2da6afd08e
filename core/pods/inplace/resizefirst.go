package inplace

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// resizesFirst divides a batch that resizes a running container and restarts it as well: its resizes go ahead, and all
// else waits until the node has carried them out. A kubelet that sees both at once starts the container with its new
// resources and leaves the cgroup of the pod as it was (computePodActions of Kubernetes 1.36): the container does not
// start, or gets no more than before.
//
// A container that does not run is not waited for, as nothing can be resized there.
func (ch changes) resizesFirst(pod *corev1.Pod, onTheirWay sets.Set[string]) (ahead, behind changes) {
	ahead, behind = ch, newChanges()
	behind.images, behind.metadata, behind.restarts = ch.images, ch.metadata, ch.restarts
	for name := range behind.containers() {
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
	insertKeys(ch.restarts, o.restarts)
}

// resizeUnderWay reports whether the node can be expected to give the container its resources now: the container runs,
// and the node has neither put that off nor failed.
func resizeUnderWay(pod *corev1.Pod, c *corev1.Container) bool {
	if c == nil || !isRunning(pod, c.Name) || awaitResources(pod, c) == nil {
		return false
	}
	if !observed(pod) {
		return true
	}
	inProgress := trueCondition(pod, corev1.PodResizeInProgress)
	return trueCondition(pod, corev1.PodResizePending) == nil && (inProgress == nil || inProgress.Reason != corev1.PodReasonError)
}

func isRunning(pod *corev1.Pod, container string) bool {
	status := statusOf(pod, container)
	return status != nil && status.State.Running != nil
}
