package nodes

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
)

// World is a cluster with nodes.
type World struct {
	*cluster.World

	runtimes  map[types.UID]*podRuntime
	addresses int
	silent    map[string]bool      // nodes whose kubelet does not report
	full      map[string]time.Time // until when nodes reject the pods that come
	agents    *Agents
}

// New makes a cluster with nodes, and with objects that exist from the start. They keep their UIDs and status.
func New(options cluster.Options, objects ...action.Object) *World {
	w := &World{
		World:    cluster.New(options),
		runtimes: map[types.UID]*podRuntime{},
		silent:   map[string]bool{},
		full:     map[string]time.Time{},
	}
	w.React(func(e cluster.Event) {
		if pod, ok := e.Object.(*corev1.Pod); ok {
			old, _ := e.Old.(*corev1.Pod)
			w.reactToPod(e, pod, old)
		}
	})
	for _, o := range objects {
		w.Add(o)
	}
	return w
}

// Runs reports whether a kubelet has started the pod and has not let it go.
func (w *World) Runs(pod types.UID) bool { return w.runtimes[pod] != nil }

// Seen returns when the kubelet saw the pod as the latest status that it wrote has it; the zero time if it wrote none.
func (w *World) Seen(pod types.UID) time.Time {
	if r := w.runtimes[pod]; r != nil {
		return r.seen
	}
	return time.Time{}
}

// ImageOf returns the image from which a container of the pod was started that has or had the ID; empty if none was.
func (w *World) ImageOf(pod types.UID, container, id string) string {
	if r := w.runtimes[pod]; r != nil {
		for _, c := range r.containers {
			if c.name == container {
				return c.images[id]
			}
		}
	}
	return ""
}

// IsSilent reports whether the kubelet of the node does not report.
func (w *World) IsSilent(node string) bool { return w.silent[node] }
