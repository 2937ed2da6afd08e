package forecast

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/simulation/cluster"

	"github.com/flotilla-project/flotilla/kustomize/workload"
)

// Times are how long the works of a cluster take.
type Times struct {
	// Creating is from the creation of a pod until its containers have started, Starting from there until it is ready.
	Creating, Starting time.Duration
	// Learnt is how many pods have shown these times; 0 means that they are assumed.
	Learnt int
}

const (
	// assumed is a time that no pod has shown.
	assumed = time.Second
	// stopping is how long a container takes to end after the signal, and ending how long its pod takes to be gone after that.
	stopping, ending = time.Second, 1500 * time.Millisecond
	// moment is the time of a work that takes next to none.
	moment = 100 * time.Millisecond
)

// Learn returns the means of the times of pods that have become ready, without the longest tenth. Their times have whole
// seconds, so that a mean is nearer than any single one.
func Learn(pods []*corev1.Pod) Times {
	var creating, starting []time.Duration
	for _, pod := range pods {
		began, restarted := startOf(pod)
		ready := workload.PodCondition(pod, corev1.PodReady)
		if began.IsZero() || ready == nil || ready.Status != corev1.ConditionTrue {
			continue
		}
		if d := ready.LastTransitionTime.Sub(began); d >= 0 {
			starting = append(starting, d)
		}
		if d := began.Sub(pod.CreationTimestamp.Time); d >= 0 && !restarted {
			creating = append(creating, d)
		}
	}
	return Times{
		Creating: mean(creating),
		Starting: mean(starting),
		Learnt:   len(starting),
	}
}

// startOf returns when the last container of a pod started, and whether any had run before.
func startOf(pod *corev1.Pod) (began time.Time, restarted bool) {
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i]
		if s.State.Running == nil {
			return time.Time{}, false
		}
		restarted = restarted || s.RestartCount > 0
		if s.State.Running.StartedAt.After(began) {
			began = s.State.Running.StartedAt.Time
		}
	}
	return began, restarted
}

// missing returns the images that no node can pull, as pods show that wait for one.
func missing(pods []*corev1.Pod) []string {
	var all []string
	for _, pod := range pods {
		failing := map[string]bool{}
		for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			failing[s.Name] = s.State.Waiting != nil && slices.Contains(pullErrors(), s.State.Waiting.Reason)
		}
		for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			if failing[c.Name] {
				all = append(all, c.Image)
			}
		}
	}
	return all
}

// pullErrors are the reasons of containers that wait because their image cannot be pulled.
func pullErrors() []string {
	return []string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"}
}

func mean(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return assumed
	}
	slices.Sort(all)
	all = all[:len(all)-len(all)/10]
	var sum time.Duration
	for _, d := range all {
		sum += d
	}
	return sum / time.Duration(len(all))
}

// Of returns how long a work takes.
func (t Times) Of(work cluster.Work) time.Duration {
	switch work {
	case cluster.Creating:
		return max(t.Creating, moment)
	case cluster.BecomingReady:
		return max(t.Starting, moment)
	case cluster.Stopping, cluster.Crashing:
		return stopping
	case cluster.Removing:
		return ending
	case cluster.Restarting:
		return stopping / 2
	case cluster.Scheduling, cluster.Noticing, cluster.Reporting, cluster.Resizing:
	}
	return moment
}
