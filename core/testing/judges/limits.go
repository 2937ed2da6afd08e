package judges

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
)

// limit is an upper bound on a value that no write of the operator may exceed, or exceed by more.
type limit struct {
	name         string
	value, bound func(*cluster.View) int
}

// measures are the values of all limits: in the world as it is, and as the operator sees it.
type measures struct{ real, known []int }

// Limit requires that no write of the operator raises the value above the bound, or further above it. Changes by users,
// kubelets and time do not count, and neither do changes that the operator cannot know yet: a write is a violation only
// if it exceeds the bound both in the world and in the operator's last view with its own writes added. Adopting and
// releasing never count, because they only follow changes of labels and owners by others.
func (w *World) Limit(name string, value, bound func(*cluster.View) int) {
	w.limits = append(w.limits, limit{name, value, bound})
}

func (w *World) measure(actor string) measures {
	if actor != cluster.OperatorActor || len(w.limits) == 0 {
		return measures{}
	}
	values := func(v *cluster.View) []int {
		list := make([]int, len(w.limits))
		for i := range w.limits {
			list[i] = w.limits[i].value(v)
		}
		return list
	}
	return measures{real: values(w.View(nil)), known: values(w.known())}
}

func (w *World) checkLimits(e cluster.Event, before measures) {
	if e.Actor != cluster.OperatorActor || len(w.limits) == 0 || e.Old != nil && cluster.ControllerOf(e.Old) != cluster.ControllerOf(e.Object) {
		return
	}
	after := w.measure(e.Actor)
	for i := range w.limits {
		l := &w.limits[i]
		bound := l.bound(w.View(nil))
		if after.real[i] <= bound || after.real[i] <= before.real[i] {
			continue
		}
		if after.known[i] > l.bound(w.known()) && after.known[i] > before.known[i] {
			w.Violate("%s: %d, at most %d, after a write to %s %s", l.name, after.real[i], bound, e.Kind, e.Object.GetName())
		}
	}
}

// CountByRevision counts the pods by the short hash of their revision.
func CountByRevision(pods []*corev1.Pod) map[string]int {
	counts := map[string]int{}
	for _, pod := range pods {
		counts[podstate.ShortHash(pod.Labels[contract.RevisionLabel])]++
	}
	return counts
}
