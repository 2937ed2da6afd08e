package ordering

import (
	"cmp"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/podstate"
)

// value is what a pod is worth: of each number, the smaller one is of less value.
type value struct {
	index     int
	assigned  int
	phase     int
	available int
	ready     int
	cost      int32
	rank      float64 // lower worth the higher the rank, so negated
	readyAge  int64
	restarts  int32 // negated
	age       int64
	name      string
}

func valueOf(index int, s *podstate.State) value {
	v := value{
		index:     index,
		assigned:  number(s.Assigned),
		phase:     phaseValue(s.Pod.Status.Phase),
		available: number(s.Available),
		ready:     number(s.Ready),
		cost:      s.DeletionCost,
		restarts:  -s.Restarts,
		age:       ageValue(s.Pod.CreationTimestamp.Time),
		name:      s.Pod.Name,
	}
	if s.Ready { // among pods that are not ready, the time says nothing
		v.readyAge = ageValue(s.ReadySince)
	}
	return v
}

func values(pods []podstate.State) []value {
	all := make([]value, len(pods))
	for i := range pods {
		all[i] = valueOf(i, &pods[i])
	}
	return all
}

// forDeletion is the order of deletion: the states first, then what the user and the ranks say,
// then the history of the pods.
func (v value) forDeletion(w value) int {
	if c := cmp.Compare(v.assigned, w.assigned); c != 0 {
		return c
	}
	if c := cmp.Compare(v.phase, w.phase); c != 0 {
		return c
	}
	if c := cmp.Compare(v.available, w.available); c != 0 {
		return c
	}
	if c := cmp.Compare(v.ready, w.ready); c != 0 {
		return c
	}
	if c := cmp.Compare(v.cost, w.cost); c != 0 {
		return c
	}
	if c := cmp.Compare(v.rank, w.rank); c != 0 {
		return c
	}
	return v.byHistory(w)
}

// forUpdate is the default order of updates. It knows no cost and no rank. Of ready pods the
// unavailable ones come first, because updating them costs no availability.
func (v value) forUpdate(w value) int {
	if c := cmp.Compare(v.assigned, w.assigned); c != 0 {
		return c
	}
	if c := cmp.Compare(v.phase, w.phase); c != 0 {
		return c
	}
	if c := cmp.Compare(v.ready, w.ready); c != 0 {
		return c
	}
	if c := cmp.Compare(v.available, w.available); c != 0 {
		return c
	}
	return v.byHistory(w)
}

// byHistory: ready for less time, more restarts, newer; and the name where nothing else decides.
// Pods of several namespaces may share a name; their places in the input keep them apart.
func (v value) byHistory(w value) int {
	if c := cmp.Compare(v.readyAge, w.readyAge); c != 0 {
		return c
	}
	if c := cmp.Compare(v.restarts, w.restarts); c != 0 {
		return c
	}
	if c := cmp.Compare(v.age, w.age); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(v.name, w.name), cmp.Compare(v.index, w.index))
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// phaseValue puts Pending before Unknown before Running. Pods that ended are worth no more than
// pending ones.
func phaseValue(p corev1.PodPhase) int {
	switch p {
	case corev1.PodRunning:
		return 2
	case corev1.PodUnknown:
		return 1
	default:
		return 0
	}
}

// ageValue grows with age; an unset time is of the least value.
func ageValue(t time.Time) int64 {
	if t.IsZero() {
		return math.MinInt64
	}
	return -t.UnixNano()
}

func indexes(sorted []value) []int {
	list := make([]int, len(sorted))
	for i := range sorted {
		list[i] = sorted[i].index
	}
	return list
}

func sortValues(list []value, order func(v, w value) int) { slices.SortFunc(list, order) }
