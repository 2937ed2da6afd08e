package podstate

import (
	"cmp"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
)

// Trouble is the cause that keeps a pod from becoming ready, as its scheduler and its kubelet report. The zero value
// means that they report nothing, as while the pod starts.
type Trouble struct {
	// Reason is one word for it, such as "ErrImagePull" or "Unschedulable".
	Reason string
	// Container is the container that is in trouble, empty when the whole pod is.
	Container string
}

// Reasons that stand for all states that the kubelet goes through in one trouble.
const (
	errImagePull     = "ErrImagePull"
	crashLoopBackOff = "CrashLoopBackOff"
	failed           = "Failed"
)

// crashWindow is how long a container must run for its kubelet to forget that it has crashed before
// (MaxContainerBackOff, twice).
const crashWindow = 10 * time.Minute

// of is the trouble of a pod of that name in words, such as "; ErrImagePull (web-7kq2x, container main)".
func (t Trouble) of(pod string) string {
	if t.Container == "" {
		return "; " + t.Reason + " (" + pod + ")"
	}
	return "; " + t.Reason + " (" + pod + ", container " + t.Container + ")"
}

// FirstTrouble is the trouble of the first of n pods that are not available, those at the update revision first,
// because a rollout waits for them. It is text to be appended to a message, such as "; ErrImagePull (web-7kq2x,
// container main)". It is empty where none is in trouble. It names one pod and counts none, so that it stays the same
// while others get into the same trouble. A nil pod is none.
func FirstTrouble(n int, at func(i int) (pod *State, updated bool)) string {
	other := ""
	for i := range n {
		pod, updated := at(i)
		if pod == nil || pod.Available || other != "" && !updated {
			continue
		}
		t := TroubleOf(pod.Pod)
		switch {
		case t == Trouble{}:
		case updated:
			return t.of(pod.Pod.Name)
		default:
			other = t.of(pod.Pod.Name)
		}
	}
	return other
}

// TroubleOf returns the trouble of the pod, its first container first. It stays the same while the kubelet goes through
// the turns of one trouble: the tries to pull an image and the pauses after them; the start, the end and the pause of a
// container that crashes. A pod that is ready in between has no trouble.
func TroubleOf(pod *corev1.Pod) Trouble {
	switch {
	case pod.DeletionTimestamp != nil, pod.Status.Phase == corev1.PodSucceeded, isCondition(pod, corev1.PodReady, corev1.ConditionTrue):
		return Trouble{}
	case pod.Status.Phase == corev1.PodFailed:
		return Trouble{Reason: cmp.Or(pod.Status.Reason, failed)}
	case isCondition(pod, corev1.PodScheduled, corev1.ConditionFalse):
		return Trouble{Reason: Condition(pod, corev1.PodScheduled).Reason}
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if reason := containerTrouble(pod, &statuses[i]); reason != "" {
				return Trouble{Reason: reason, Container: statuses[i].Name}
			}
		}
	}
	return Trouble{}
}

func isCondition(pod *corev1.Pod, t corev1.PodConditionType, status corev1.ConditionStatus) bool {
	c := Condition(pod, t)
	return c != nil && c.Status == status
}

func containerTrouble(pod *corev1.Pod, s *corev1.ContainerStatus) string {
	if s.Ready {
		return ""
	}
	if reason := waitingTrouble(s.State.Waiting); reason != "" {
		return reason
	}
	end := s.State.Terminated
	switch {
	case end == nil:
		end = s.LastTerminationState.Terminated
	case staysDown(pod, s.Name, end):
		return end.Reason
	}
	if end != nil && crashed(pod, end) {
		return crashLoopBackOff
	}
	return ""
}

// waitingTrouble is one word for all reasons that take turns.
func waitingTrouble(waiting *corev1.ContainerStateWaiting) string {
	if waiting == nil {
		return ""
	}
	switch reason := waiting.Reason; reason {
	case "ContainerCreating", "PodInitializing":
		return ""
	case "ImagePullBackOff", "RegistryUnavailable", "SignatureValidationFailed":
		return errImagePull
	case "RunContainerError", "PostStartHookError":
		return crashLoopBackOff
	default:
		return reason
	}
}

// crashed reports whether the run was short and was not ended by an update.
func crashed(pod *corev1.Pod, run *corev1.ContainerStateTerminated) bool {
	began := run.StartedAt.Time
	if began.Unix() <= 0 { // runtimes report this for a container that they could not start
		began = run.FinishedAt.Time
	}
	return run.FinishedAt.Sub(began) < crashWindow && !endedByUpdate(pod, began)
}

// staysDown reports whether the kubelet leaves the container stopped.
func staysDown(pod *corev1.Pod, name string, end *corev1.ContainerStateTerminated) bool {
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			if c := &containers[i]; c.Name == name && c.RestartPolicy != nil {
				return *c.RestartPolicy == corev1.ContainerRestartPolicyNever ||
					*c.RestartPolicy == corev1.ContainerRestartPolicyOnFailure && end.ExitCode == 0
			}
		}
	}
	return false
}

// endedByUpdate reports whether a run which began then was of the pod before its last update in place: the kubelet has
// ended it for the update, or it shows nothing about the present container. A record that cannot be read proves
// nothing.
func endedByUpdate(pod *corev1.Pod, began time.Time) bool {
	text := cmp.Or(pod.Annotations[contract.InPlaceUpdateStateAnnotation], pod.Annotations[contract.LegacyInPlaceUpdateStateAnnotation])
	if text == "" {
		return false
	}
	type written struct {
		UpdateTimestamp time.Time `json:"updateTimestamp"`
		Batches         []struct {
			Timestamp time.Time `json:"timestamp"`
		} `json:"containerBatchesRecord"`
	}
	var record written
	if err := json.Unmarshal([]byte(text), &record); err != nil {
		return true
	}
	last := record.UpdateTimestamp
	for _, b := range record.Batches {
		if b.Timestamp.After(last) {
			last = b.Timestamp
		}
	}
	return began.Before(last)
}
