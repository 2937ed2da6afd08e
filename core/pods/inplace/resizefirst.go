package inplace

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/inplace/completion"
	"github.com/flotilla-project/flotilla/core/pods/inplace/quantity"
	"github.com/flotilla-project/flotilla/core/pods/inplace/record"
	"github.com/flotilla-project/flotilla/core/pods/inplace/running"
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
func resizesLast(ch record.Changes, c *action.PodChange, s *record.State) (now, behind record.Changes) {
	now, behind = ch, record.NewChanges()
	now.Resources = map[string]corev1.ResourceRequirements{}
	restarted := ch.Restarted()
	for name, r := range ch.Resources {
		down := !running.Is(c.Pod, name) && (restarted.Has(name) || raisesLimit(c.Pod, name, r) != "")
		if down || completion.RestartAwaited(s, c, name) != nil {
			behind.Resources[name] = r
		} else {
			now.Resources[name] = r
		}
	}
	return now, behind
}

// resizesFirst divides a batch that resizes a running container and restarts it as well: its resizes go ahead, and all
// else waits until the node has carried them out.
func resizesFirst(ch record.Changes, pod *corev1.Pod, onTheirWay sets.Set[string]) (ahead, behind record.Changes) {
	ahead, behind = ch, record.NewChanges()
	behind.Images = ch.Images
	behind.Metadata = ch.Metadata
	behind.Restarts = ch.Restarts
	for name := range ch.Restarted() {
		_, written := ch.Resources[name]
		if written && running.Is(pod, name) || onTheirWay.Has(name) && completion.ResizeUnderWay(pod, running.Container(pod, name)) {
			ahead = record.NewChanges()
			ahead.Resources = ch.Resources
			return ahead, behind
		}
	}
	return ahead, record.NewChanges()
}

// raisesLimit is the name of the resource of which r gives the container a higher limit than it has; empty where there is
// none.
func raisesLimit(pod *corev1.Pod, container string, r corev1.ResourceRequirements) corev1.ResourceName {
	if c := running.Container(pod, container); c != nil {
		return quantity.RaisedLimit(c.Resources, r)
	}
	return ""
}

// isDown reports whether the container does not run, and nothing is known that is about to start it.
func isDown(s *record.State, c *action.PodChange, container string) bool {
	return !running.Is(c.Pod, container) && !running.Starting(c.Pod, container) && (s == nil || completion.RestartAwaited(s, c, container) == nil)
}
