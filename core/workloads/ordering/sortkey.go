package ordering

import (
	"cmp"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// sortKey is the sort key of a pod. A pod with the smaller value of a field comes first, except for rank.
type sortKey struct {
	index    int
	state    int
	cost     int32
	restarts int32 // negated: more restarts are worth less
	rank     float64
	readyAge int64
	age      int64
	name     string
}

func sortKeys(pods []podstate.State, which []int) []sortKey {
	list := make([]sortKey, len(which))
	for i, index := range which {
		list[i] = valueOf(index, &pods[index])
	}
	return list
}

func valueOf(index int, s *podstate.State) sortKey {
	v := sortKey{
		index:    index,
		state:    stateValue(s),
		cost:     s.DeletionCost,
		restarts: -s.Restarts,
		age:      ageValue(s.Pod.CreationTimestamp.Time),
		name:     s.Pod.Name,
	}
	if s.Ready { // among pods that are not ready, the time does not matter
		v.readyAge = ageValue(s.ReadySince)
	}
	return v
}

// stateValue: not assigned before assigned, then the phases, then not ready before ready before
// available. Deletion and update agree here: an available pod is ready, so whether availability or
// readiness is asked first makes no difference.
func stateValue(s *podstate.State) int {
	return 9*number(s.Assigned) + 3*phaseValue(s.Pod.Status.Phase) + number(s.Ready) + number(s.Ready && s.Available)
}

// forDeletion compares in the order of deletion: the state first, then the deletion cost and the rank, then the history
// of the pods.
func (v *sortKey) forDeletion(w *sortKey) int {
	if c := cmp.Compare(v.state, w.state); c != 0 {
		return c
	}
	if c := cmp.Compare(v.cost, w.cost); c != 0 {
		return c
	}
	if c := cmp.Compare(w.rank, v.rank); c != 0 {
		return c
	}
	return v.byHistory(w)
}

// forUpdate is the default order of updates. It knows no cost and no rank. Of ready pods the
// unavailable ones come first, because updating them costs no availability.
func (v *sortKey) forUpdate(w *sortKey) int {
	if c := cmp.Compare(v.state, w.state); c != 0 {
		return c
	}
	return v.byHistory(w)
}

// byHistory: ready for less time, more restarts, newer; and the name where nothing else decides.
func (v *sortKey) byHistory(w *sortKey) int {
	if c := cmp.Compare(v.readyAge, w.readyAge); c != 0 {
		return c
	}
	if c := cmp.Compare(v.restarts, w.restarts); c != 0 {
		return c
	}
	if c := cmp.Compare(v.age, w.age); c != 0 {
		return c
	}
	return cmp.Compare(v.name, w.name)
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// phaseValue puts Pending before Unknown before Running. Pods that ended come with pending ones.
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

// ageValue grows with age; an unset time comes first.
func ageValue(t time.Time) int64 {
	if t.IsZero() {
		return math.MinInt64
	}
	return -t.UnixNano()
}

// sorted is the indexes of the values in order.
func sorted(list []sortKey, order func(v, w *sortKey) int) []int {
	pointers := make([]*sortKey, len(list))
	for i := range list {
		pointers[i] = &list[i]
	}
	slices.SortFunc(pointers, order)
	indexes := make([]int, len(list))
	for i, v := range pointers {
		indexes[i] = v.index
	}
	return indexes
}
