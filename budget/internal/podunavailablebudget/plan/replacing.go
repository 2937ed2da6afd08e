package plan

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/pods/imageref"
	"github.com/flotilla-project/flotilla/core/pods/podspec"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
)

const (
	// defaultGrace is the grace period of pods that name none.
	defaultGrace = 30 * time.Second
	// endsWithin is how long a node may take to end a container, besides the pod's grace period.
	endsWithin = 10 * time.Second
	// askAgain is how often the server is asked about a pod whose containers are to be replaced.
	askAgain = 5 * time.Second
)

// Replacements are granted changes of pods that serve with the images of before although their nodes know of the change:
// kubelets say so before they end containers for it.
type Replacements map[Grant]replacement

type replacement struct {
	since time.Time // by the clock of this process
	asked time.Time // when the server has last said so
	grace time.Duration
}

// Next returns the replacements after the server was asked about some of the pods. Others stay as they are.
func (r Replacements) Next(status *v1beta1.PodUnavailableBudgetStatus, looks Looks, now time.Time) Replacements {
	next := Replacements{}
	for _, g := range Grants(status) {
		known, had := r[g]
		look, asked := looks[g.Pod]
		switch {
		case !asked && had:
			next[g] = known
		case !asked || g.Disrupts || look.Pod == nil || g.UID != "" && g.UID != look.Pod.UID || isBehind(look.Pod) || !isReplacing(look.Pod):
		case had:
			next[g] = replacement{known.since, now, known.grace}
		default:
			next[g] = replacement{now, now, graceOf(look.Pod)}
		}
	}
	return next
}

// areFresh reports whether the server has said a moment ago that the containers are to be replaced.
func (r Replacements) areFresh(g Grant, now time.Time) bool {
	known, ok := r[g]
	return ok && now.Sub(known.asked) < askAgain
}

// left returns how much longer containers may be about to end. What a node reports of an image can be another name of it:
// it is not waited for longer than containers can take.
func (r Replacements) left(g Grant, now time.Time) time.Duration {
	known, ok := r[g]
	if !ok {
		return 0
	}
	return known.since.Add(known.grace + endsWithin).Sub(now)
}

func graceOf(pod *corev1.Pod) time.Duration {
	if seconds := pod.Spec.TerminationGracePeriodSeconds; seconds != nil {
		return time.Duration(*seconds) * time.Second
	}
	return defaultGrace
}

// isReplacing reports whether the pod serves and one of its containers does not run its image.
func isReplacing(pod *corev1.Pod) bool {
	if statusOf(pod, corev1.PodReady) != corev1.ConditionTrue {
		return false
	}
	statuses := slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses)
	return slices.ContainsFunc(podspec.LongRunning(&pod.Spec), func(c *corev1.Container) bool {
		i := slices.IndexFunc(statuses, func(s corev1.ContainerStatus) bool { return s.Name == c.Name })
		return i >= 0 && !runs(&statuses[i], c.Image)
	})
}

// runs reports whether the container is known to run the image.
func runs(s *corev1.ContainerStatus, image string) bool {
	_, digest, pinned := strings.Cut(image, "@")
	return pinned && strings.HasSuffix(s.ImageID, digest) || s.Image == image || isSame(s.Image, image)
}

// isSame reports whether two references name one image.
func isSame(a, b string) bool {
	first, err := imageref.Parse(a)
	if err != nil {
		return false
	}
	second, err := imageref.Parse(b)
	return err == nil && first == second
}
