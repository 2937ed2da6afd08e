package completion

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/pods/inplace/agentreport"
	"github.com/flotilla-project/flotilla/core/pods/inplace/record"
	"github.com/flotilla-project/flotilla/core/pods/inplace/running"
)

// AwaitImage is the wait for the container's image change, nil when it is done.
func AwaitImage(pod *corev1.Pod, s *record.State, name string, now time.Time) *Progress {
	spec := running.Container(pod, name)
	status := running.Status(pod, name)
	last := s.LastContainerStatuses[name]
	switch {
	case spec == nil:
		return nil
	case !Observed(pod):
		return WaitFor(ReasonKubelet, "the kubelet has not observed the current spec of the pod yet")
	case status == nil || status.ContainerID == "":
		return WaitFor(ReasonContainer, "container %s has not been started yet", name)
	case running.Sidecar(pod, name) != nil && running.StartsUp(status):
		return WaitFor(ReasonContainer, "container %s has yet to pass its startup probe", name)
	}
	wanted := runs(status, spec.Image) || agentreport.StartedFrom(pod, spec, status)
	if last.ContainerID == nil {
		return awaitImageWithoutID(s, pod, spec, status, wanted, now)
	}
	sure := *last.ContainerID != ""
	switch {
	case sure && *last.ContainerID == status.ContainerID:
		return WaitFor(ReasonContainer, "container %s has not been restarted with image %s yet", name, spec.Image)
	case !sure && !isStarted(status):
		return WaitFor(ReasonContainer, "container %s is not running with image %s yet", name, spec.Image)
	case wanted, otherImage(last.ImageID, status.ImageID):
		return nil
	case !isStarted(status):
		return WaitFor(ReasonContainer, "container %s is not running with image %s yet", name, spec.Image)
	}
	return awaitProof(s, spec, status, sure, now)
}

// awaitImageWithoutID is awaitImage for a state that OpenKruise wrote, which names no container.
func awaitImageWithoutID(s *record.State, pod *corev1.Pod, spec *corev1.Container, status *corev1.ContainerStatus, wanted bool, now time.Time) *Progress {
	switch {
	case wanted || !sameImageID(status.ImageID, s.LastContainerStatuses[spec.Name].ImageID):
		return nil
	case pod.Status.ObservedGeneration > 0 && status.State.Running != nil:
		return awaitProof(s, spec, status, false, now)
	}
	return WaitFor(ReasonContainer, "container %s has not been restarted with image %s yet", spec.Name, spec.Image)
}

// otherImage reports whether both image IDs are known and differ.
func otherImage(recorded, shown string) bool {
	return recorded != "" && shown != "" && !sameImageID(shown, recorded)
}

// awaitProof is the wait of rule 4, nil when it is over.
func awaitProof(s *record.State, spec *corev1.Container, status *corev1.ContainerStatus, sure bool, now time.Time) *Progress {
	wait := UnsureTime
	if sure && status.Ready {
		wait = SettleTime
	}
	left := s.WrittenAt(spec.Name).Add(wait).Sub(now)
	if left <= 0 {
		return nil
	}
	p := WaitFor(ReasonContainer, "container %s reports image %s instead of %s", spec.Name, status.Image, spec.Image)
	p.RequeueAfter = left
	return p
}

// isStarted reports whether the shown container is one that the kubelet keeps running.
func isStarted(s *corev1.ContainerStatus) bool {
	return s.State.Running != nil || running.BacksOff(s)
}
