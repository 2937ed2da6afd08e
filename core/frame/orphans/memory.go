package orphans

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// memory is what is known of one workload, which is looked at by one goroutine at a time.
type memory struct {
	uid types.UID
	// met says that the server was asked, or put off, since the workload is known; asked is when, and for
	// which generation of the workload.
	met        bool
	asked      time.Time
	generation int64
	// putOff says that the server was not asked: the workload lacked nothing.
	putOff bool
	// inDoubt says that the workload may have pods that the cache does not show.
	inDoubt bool
	// looks counts the looks at the workload.
	looks uint64
	// pods are those that nobody was deleting, by their UIDs.
	pods map[types.UID]sighting
	// taken are the names and claims that pods of others have, with the moment until which that is remembered.
	taken map[string]time.Time
}

// sighting is when a pod was seen last.
type sighting struct {
	name string
	look uint64
}

// question says for which pods without the label the server is asked.
type question int

const (
	nothing  question = iota
	selected          // those that the selector matches
	all
)

// follow remembers the pods. Where one is missing, though nobody was deleting it, the cache may hide it.
func (m *memory) follow(lists ...[]*corev1.Pod) {
	m.looks++
	shown := 0
	for _, pods := range lists {
		for _, pod := range pods {
			if pod.DeletionTimestamp != nil {
				delete(m.pods, pod.UID)
				continue
			}
			m.pods[pod.UID] = sighting{pod.Name, m.looks}
			shown++
		}
	}
	m.inDoubt = m.inDoubt || len(m.pods) > shown
}

// next says what to ask the server now.
func (m *memory) next(s *Search, now time.Time) question {
	if !m.met {
		m.inDoubt = m.inDoubt || int(s.Counted) > len(s.Pods)
	}
	switch {
	case m.inDoubt:
		return all
	case !m.met && s.isComplete():
		m.remember(s, now.Add(-ahead(m.uid)), true)
		return nothing
	case !m.met, m.generation != s.Owner.GetGeneration(), now.Sub(m.asked) >= Interval, m.putOff && !s.isComplete():
		return selected
	}
	return nothing
}

// answered remembers the answer. As long as it tells of pods, the server is asked again.
func (m *memory) answered(s *Search, q question, found Found, now time.Time) {
	if len(found.Own)+len(found.Orphans) > 0 {
		return
	}
	m.remember(s, now, false)
	if q == selected {
		return
	}
	m.inDoubt = false
	for uid, seen := range m.pods {
		if seen.look != m.looks {
			delete(m.pods, uid)
		}
	}
}

// missing returns the names of the pods that the last look did not show, but for those that were found.
func (m *memory) missing(found []*corev1.Pod) []string {
	var names []string
	for uid, seen := range m.pods {
		if seen.look != m.looks && !slices.ContainsFunc(found, func(o *corev1.Pod) bool { return o.UID == uid }) {
			names = append(names, seen.name)
		}
	}
	slices.Sort(names)
	return names
}

func (m *memory) remember(s *Search, at time.Time, putOff bool) {
	m.met, m.asked, m.generation, m.putOff = true, at, s.Owner.GetGeneration(), putOff
}
