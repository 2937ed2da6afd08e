package plan

import (
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// longestMessage is how many bytes of a message a status shows.
const longestMessage = 256

// state is how a pod counts for its job, and how a node stands.
type state int

const (
	succeeded state = iota
	failed
	active
	leaving // deleted before it has ended
	ignored // has failed, which does not count
	empty   // the node has no pod
)

// stateOf: a pod that was restarted too often has failed, although it runs. One that was deleted while it ran has not,
// whatever phase the kubelet reports before it goes, unless a rule of the user is about that.
func stateOf(pod *corev1.Pod, r rules) state {
	switch {
	case pod.Status.Phase == corev1.PodSucceeded:
		return succeeded
	case pod.Status.Phase == corev1.PodFailed:
		rule, do := matching(r.policy, pod)
		switch {
		case do == batchv1.PodFailurePolicyActionIgnore:
			return ignored
		case rule < 0 && deletedFirst(pod):
			return leaving
		}
		return failed
	case pod.DeletionTimestamp != nil:
		return leaving
	case pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure && restarts(pod) > r.restartLimit:
		return failed
	}
	return active
}

// deletedFirst reports whether a failed pod was deleted before one of its containers had failed. Since Kubernetes 1.27 the
// kubelet ends the containers of a deleted pod and reports phase Failed before the pod goes. With a grace period of 0 the
// pod is on its way out, and its deletionTimestamp says no more when it was deleted: the API server moves that to the
// kubelet's last request.
func deletedFirst(pod *corev1.Pod) bool {
	grace := pod.DeletionGracePeriodSeconds
	switch {
	case pod.DeletionTimestamp == nil, pod.Status.Reason != "": // evicted or past its deadline, and deleted then
		return false
	case grace == nil, *grace == 0:
		return true
	}
	period := action.Seconds(*grace)
	asked, last := pod.DeletionTimestamp.Add(-period), lastEnd(pod)
	// The clock of the node may be behind the API server's. By its own clock, a container that had failed ended longer
	// before the others than a deletion takes.
	return !slices.ContainsFunc(statusesOf(pod), func(c corev1.ContainerStatus) bool {
		end := c.State.Terminated
		return end != nil && end.ExitCode != 0 && end.FinishedAt.Time.Before(asked) && last.Sub(end.FinishedAt.Time) > period
	})
}

// lastEnd returns when the last container of the pod has ended, by the clock of its node. It is zero if none has.
func lastEnd(pod *corev1.Pod) (last time.Time) {
	for _, c := range statusesOf(pod) {
		if end := c.State.Terminated; end != nil && end.FinishedAt.After(last) {
			last = end.FinishedAt.Time
		}
	}
	return last
}

func statusesOf(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
}

// ended reports whether the pod has no running container any more.
func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func restarts(pod *corev1.Pod) (n int32) {
	for i := range pod.Status.InitContainerStatuses {
		n += pod.Status.InitContainerStatuses[i].RestartCount
	}
	for i := range pod.Status.ContainerStatuses {
		n += pod.Status.ContainerStatuses[i].RestartCount
	}
	return n
}

// stopped reports whether the pod has a deadline that makes the node end it at once.
func stopped(pod *corev1.Pod) bool {
	return pod.Spec.ActiveDeadlineSeconds != nil && *pod.Spec.ActiveDeadlineSeconds <= 1
}

// failureOf returns why a pod has failed.
func failureOf(node string, pod *corev1.Pod) v1beta1.PodFailure {
	f := v1beta1.PodFailure{
		Node:    node,
		Pod:     pod.Name,
		Reason:  pod.Status.Reason,
		Message: Shorten(pod.Status.Message),
	}
	end := failedContainer(pod)
	if end != nil {
		f.ExitCode = new(end.ExitCode)
		if f.Reason == "" {
			f.Reason = end.Reason
		}
		if text := strings.TrimSpace(end.Message); text != "" {
			f.Message = Shorten(text)
		}
	}
	if pod.Status.Phase != corev1.PodFailed || stopped(pod) {
		f.Reason = FailureRestarts
	}
	return f
}

// failedContainer returns how the first container that failed has ended: now, or before its restart.
func failedContainer(pod *corev1.Pod) *corev1.ContainerStateTerminated {
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range list {
			for _, end := range []*corev1.ContainerStateTerminated{list[i].LastTerminationState.Terminated, list[i].State.Terminated} {
				if end != nil && end.ExitCode != 0 && (list[i].State.Terminated == end || list[i].RestartCount > 0) {
					return end
				}
			}
		}
	}
	return nil
}

// Shorten returns as much of a message as a status shows and the cache keeps.
func Shorten(text string) string {
	if len(text) > longestMessage {
		return strings.ToValidUTF8(text[:longestMessage], "")
	}
	return text
}
