package nodes

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
)

// patience is how many times as long as others take a container may need to become ready; a container that has needed
// longer stays as it is.
const patience = 3

// takeOver believes the status of a pod that ran before the world began, and continues from there.
func (w *World) takeOver(pod *corev1.Pod) {
	r := &podRuntime{
		key:        cluster.KeyOf(pod),
		uid:        pod.UID,
		generation: pod.Generation,
		address:    pod.Status.PodIP,
		started:    w.Now(),
		node:       pod.Spec.NodeName,
		cgroup:     limitsOf(&pod.Spec),
	}
	if pod.Status.StartTime != nil {
		r.started = pod.Status.StartTime.Time
	}
	statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	for _, spec := range podspec.LongRunning(&pod.Spec) {
		c := &containerRuntime{
			name:      spec.Name,
			spec:      spec,
			resources: spec.Resources,
		}
		for i := range statuses {
			if statuses[i].Name == c.name {
				c.takeOver(&statuses[i], pod.CreationTimestamp.Time)
			}
		}
		r.containers = append(r.containers, c)
	}
	w.runtimes[pod.UID] = r
	if w.Options.Takes != nil {
		w.resume(pod, r)
	}
}

// takeOver believes a status of the container.
func (c *containerRuntime) takeOver(s *corev1.ContainerStatus, created time.Time) {
	c.id = s.ContainerID
	c.imageID = s.ImageID
	c.shownImage = s.Image
	c.remember(c.spec.Image)
	c.running = s.State.Running != nil || s.Ready
	c.ready = s.Ready
	c.restarts = s.RestartCount
	c.began = created
	c.last = s.LastTerminationState.Terminated
	if s.State.Running != nil && !s.State.Running.StartedAt.IsZero() {
		c.began = s.State.Running.StartedAt.Time
	}
	if s.State.Waiting != nil {
		c.waiting = s.State.Waiting.Reason
	}
}

// resume lets the kubelet continue with what it was about to do for the pod.
func (w *World) resume(pod *corev1.Pod, r *podRuntime) {
	if podstate.IsFinished(pod) {
		r.ending, r.ended = true, pod.Status.Phase
	}
	if pod.DeletionTimestamp != nil {
		w.After(w.Takes(cluster.Noticing, time.Second), func() { w.sync(r.key, r.uid) })
		return
	}
	for _, c := range r.containers {
		switch {
		case r.ended != "" || c.ready:
		case c.running && w.Now().Sub(c.began) < patience*w.Takes(cluster.BecomingReady, time.Second):
			w.settleContainer(r, c)
		case !c.running && (c.waiting == "" || c.waiting == "ContainerCreating" || c.waiting == "PodInitializing"):
			w.startLater(r, c)
		}
	}
}
