package plan

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/pods/imageref"
	"github.com/flotilla-project/flotilla/core/pods/podspec"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/disruption"
)

const (
	// defaultGrace is the grace period of pods that name none.
	defaultGrace = 30 * time.Second
	// endsWithin is how long a node may take to end a container, in addition to the pod's grace period.
	endsWithin = 10 * time.Second
	// askAgain is how often the server is asked about a pod with containers that are to be replaced.
	askAgain = 5 * time.Second
)

// Replacements are the server's answers about pods with a granted change since the change was granted. Kubelets report that
// they know of a change before they end containers for it: until then these serve with the earlier images.
type Replacements map[disruption.Grant]replacement

type replacement struct {
	// restarts are how often each container had restarted when the change was new: one that has restarted since runs its image.
	restarts map[string]int32
	// generation is the generation of the pod at the last look.
	generation int64
	since      time.Time // when the former containers were first seen to serve, by the clock of this process; zero if they do not
	asked      time.Time // when the server has last shown whether they do
	grace      time.Duration
}

// Next returns the replacements after the server was asked about some of the pods. Others stay as they are. A look that is
// older than its grant must not be among the looks: it may have fewer restarts.
func (r Replacements) Next(status *v1beta1.PodUnavailableBudgetStatus, looks Looks, now time.Time) Replacements {
	next := Replacements{}
	for _, g := range disruption.Grants(status) {
		known, had := r[g]
		look, asked := looks[g.Pod]
		switch {
		case !asked && had:
			next[g] = known
		case asked && !g.Disrupts && look.Pod != nil && (g.UID == "" || g.UID == look.Pod.UID):
			next[g] = known.after(look.Pod, had, now)
		}
	}
	return next
}

// after returns the replacement after the server has shown the pod, for the first time if it was not known. The former
// containers of each generation of the pod have their own time to end.
func (r replacement) after(pod *corev1.Pod, known bool, now time.Time) replacement {
	if !known || disruption.IsBehind(pod) { // a container that restarts now can restart as it was
		r = replacement{restarts: restartsOf(pod), grace: graceOf(pod)}
	}
	since := r.since
	switch {
	case disruption.IsBehind(pod):
		return r
	case !isReplacing(pod, r.restarts):
		since = time.Time{}
	case since.IsZero() || pod.Generation != r.generation:
		since = now
	}
	return replacement{r.restarts, pod.Generation, since, now, r.grace}
}

// has reports whether the server was asked about the pod since the change was granted.
func (r Replacements) has(g disruption.Grant) bool {
	_, ok := r[g]
	return ok
}

// areFresh reports whether the server has shown a moment ago that the containers are to be replaced.
func (r Replacements) areFresh(g disruption.Grant, now time.Time) bool {
	known := r[g]
	return !known.since.IsZero() && now.Sub(known.asked) < askAgain
}

// left returns how much longer containers may be about to end. A node can report another name of an image: the wait is no
// longer than containers can take.
func (r Replacements) left(g disruption.Grant, now time.Time) time.Duration {
	known := r[g]
	if known.since.IsZero() {
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

// restartsOf returns how often each container of the pod has restarted.
func restartsOf(pod *corev1.Pod) map[string]int32 {
	restarts := map[string]int32{}
	for _, s := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses) {
		restarts[s.Name] = s.RestartCount
	}
	return restarts
}

// isReplacing reports whether the pod serves and one of its containers, which had restarted so often before, does not run its
// image.
func isReplacing(pod *corev1.Pod, before map[string]int32) bool {
	if disruption.StatusOf(pod, corev1.PodReady) != corev1.ConditionTrue {
		return false
	}
	statuses := slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses)
	return slices.ContainsFunc(podspec.LongRunning(&pod.Spec), func(c *corev1.Container) bool {
		i := slices.IndexFunc(statuses, func(s corev1.ContainerStatus) bool { return s.Name == c.Name })
		return i >= 0 && statuses[i].RestartCount <= before[c.Name] && !runs(&statuses[i], c.Image)
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
