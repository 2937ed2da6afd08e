package orphans

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// known is the memory of one workload, which is used by one goroutine at a time.
type known struct {
	uid types.UID
	// once is true once the server was asked, or the question was put off; asked is when, and for which generation of
	// the workload.
	once       bool
	asked      time.Time
	generation int64
	// putOff means that the server was not asked, because the workload had all its pods.
	putOff bool
	// recheck means that the workload may have pods that the cache does not show.
	recheck bool
	// looks counts calls of Find.
	looks uint64
	// pods are the pods that were not being deleted, by UID.
	pods map[types.UID]seen
	// taken are the names of pods and claims that pods of others use, each with the time until which that is
	// remembered.
	taken map[string]time.Time
}

// seen is when a pod was seen last.
type seen struct {
	name string
	look uint64
}

// question selects the pods without the label that the server is asked for.
type question int

const (
	nothing  question = iota
	selected          // those that the selector matches
	all
)

// follow remembers the pods. If one is missing that was not being deleted, the cache may hide it.
func (m *known) follow(lists ...[]*corev1.Pod) {
	m.looks++
	shown := 0
	for _, pods := range lists {
		for _, pod := range pods {
			if pod.DeletionTimestamp != nil {
				delete(m.pods, pod.UID)
				continue
			}
			m.pods[pod.UID] = seen{pod.Name, m.looks}
			shown++
		}
	}
	m.recheck = m.recheck || len(m.pods) > shown
}

// next returns the question to ask the server now.
func (m *known) next(s *Search, now time.Time) question {
	if !m.once {
		m.recheck = m.recheck || int(s.Counted) > len(s.Pods)
	}
	switch {
	case m.recheck:
		return all
	case !m.once && s.isComplete():
		m.remember(s, now.Add(-spread(m.uid)), true)
		return nothing
	case !m.once, m.generation != s.Owner.GetGeneration(), now.Sub(m.asked) >= interval, m.putOff && !s.isComplete():
		return selected
	}
	return nothing
}

// answered remembers the answer. As long as it has pods, the server is asked again.
func (m *known) answered(s *Search, q question, found Found, now time.Time) {
	if len(found.Own)+len(found.Orphans) > 0 {
		return
	}
	m.remember(s, now, false)
	if q == selected {
		return
	}
	m.recheck = false
	for uid, seen := range m.pods {
		if seen.look != m.looks {
			delete(m.pods, uid)
		}
	}
}

// missing returns the names of the pods that were missing at the last look, except for those in found.
func (m *known) missing(found []*corev1.Pod) []string {
	var names []string
	for uid, seen := range m.pods {
		if seen.look != m.looks && !slices.ContainsFunc(found, func(o *corev1.Pod) bool { return o.UID == uid }) {
			names = append(names, seen.name)
		}
	}
	slices.Sort(names)
	return names
}

func (m *known) remember(s *Search, at time.Time, putOff bool) {
	m.once = true
	m.asked = at
	m.generation = s.Owner.GetGeneration()
	m.putOff = putOff
}
