package running

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/pods/podspec"
)

// Since reports whether the present run of the container began at the moment or later, as far as two clocks show.
func Since(pod *corev1.Pod, container string, at time.Time) bool {
	status := Status(pod, container)
	return status != nil && status.State.Running != nil && !status.State.Running.StartedAt.Time.Before(at.Truncate(time.Second))
}

// Container is the container or the native sidecar of that name; nil for an init container that ends.
func Container(pod *corev1.Pod, name string) *corev1.Container {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == name {
			return &pod.Spec.Containers[i]
		}
	}
	return Sidecar(pod, name)
}

// Sidecar is the native sidecar of that name, or nil.
func Sidecar(pod *corev1.Pod, name string) *corev1.Container {
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; c.Name == name && podspec.IsSidecar(c) {
			return c
		}
	}
	return nil
}

// Status is the status of the container or init container of that name; nil when the kubelet has not reported it.
func Status(pod *corev1.Pod, name string) *corev1.ContainerStatus {
	for _, statuses := range [...][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range statuses {
			if statuses[i].Name == name {
				return &statuses[i]
			}
		}
	}
	return nil
}

// StartsUp reports whether the container runs and has yet to pass its startup probe, as far as the kubelet reports.
func StartsUp(s *corev1.ContainerStatus) bool {
	return s.State.Running != nil && !s.Ready && s.Started != nil && !*s.Started
}

// Crashes reports whether the kubelet waits with the next run of the container because it ends again and again.
func Crashes(pod *corev1.Pod, container string) bool {
	status := Status(pod, container)
	return status != nil && BacksOff(status)
}

// BacksOff reports whether the kubelet waits with the next run of the container of the status because it ends again and
// again.
func BacksOff(s *corev1.ContainerStatus) bool {
	return s.State.Waiting != nil && s.State.Waiting.Reason == "CrashLoopBackOff"
}

// OutOfMemory is the reason of the kubelet for a run that ended because the container, or its pod, had reached the limit of
// memory.
const OutOfMemory = "OOMKilled"

// KilledForMemory reports whether the last run of the container ended with OutOfMemory.
func KilledForMemory(pod *corev1.Pod, container string) bool {
	status := Status(pod, container)
	return status != nil && status.LastTerminationState.Terminated != nil && status.LastTerminationState.Terminated.Reason == OutOfMemory
}

// Is reports whether the container runs, as the kubelet reports it.
func Is(pod *corev1.Pod, container string) bool {
	status := Status(pod, container)
	return status != nil && status.State.Running != nil
}

// Starting reports whether the kubelet is about to run the container again and nothing is known that prevents it.
func Starting(pod *corev1.Pod, container string) bool {
	status := Status(pod, container)
	return status != nil && status.ContainerID != "" && status.State.Waiting != nil && status.State.Waiting.Reason == "ContainerCreating"
}

// ID is the ID of the container in the pod's status, empty when it was never started.
func ID(pod *corev1.Pod, name string) string {
	if status := Status(pod, name); status != nil && Container(pod, name) != nil {
		return status.ContainerID
	}
	return ""
}
