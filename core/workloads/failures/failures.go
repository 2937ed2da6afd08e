package failures

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/memory"
)

// Message names the place where pods fail, such as "on node n1", and the time when the next one is made.
func Message(where string, next time.Time) string {
	return fmt.Sprintf("pods %s fail repeatedly; the next one is created at %s", where, next.UTC().Format(time.RFC3339))
}

// The pauses before failed pods of one place are replaced: none for the first, then from the shortest to the longest,
// each twice the one before. A place without failures for twice the longest begins again without a pause.
const (
	shortestPause = time.Second
	longestPause  = 15 * time.Minute
)

// Memory remembers the failures of all sets. The zero value is ready for use. It is safe for concurrent use.
type Memory struct {
	sets memory.Objects[*failingSet]
}

// failingSet is the state of one set and one revision.
type failingSet struct {
	revision string
	places   map[string]*failure
}

// failure is how often pods failed at a place.
type failure struct {
	pods  []types.UID // may be replaced
	pause time.Duration
	since time.Time
}

// RetryAt notes the pods that have failed and are not terminating, and returns for each place that has to wait when
// they may be replaced. The revision is the one that the set is updated to: failures of another one do not count for
// it. A pod that may be replaced now starts the next pause of its place.
func (m *Memory) RetryAt(set metav1.Object, revision string, pods []*corev1.Pod, place func(*corev1.Pod) string, now time.Time) map[string]time.Time {
	failed := map[string][]types.UID{}
	for _, pod := range pods {
		if pod.Status.Phase == corev1.PodFailed && pod.DeletionTimestamp == nil {
			at := place(pod)
			failed[at] = append(failed[at], pod.UID)
		}
	}
	wait := map[string]time.Time{}
	m.sets.Change(memory.KeyOf(set), func(known *failingSet) (*failingSet, bool) {
		if known == nil || known.revision != revision {
			known = &failingSet{revision: revision, places: map[string]*failure{}}
		}
		for at, uids := range failed {
			if until := known.failedAt(at, uids, now); until.After(now) {
				wait[at] = until
			}
		}
		for at, f := range known.places {
			if now.Sub(f.since) > 2*longestPause {
				delete(known.places, at)
			}
		}
		return known, len(known.places) > 0
	})
	return wait
}

// Forget drops a set that is gone.
func (m *Memory) Forget(name types.NamespacedName) { m.sets.Forget(name) }

// failedAt returns until when failed pods of a place wait.
func (s *failingSet) failedAt(place string, pods []types.UID, now time.Time) time.Time {
	f := s.places[place]
	if f == nil {
		f = &failure{}
		s.places[place] = f
	}
	if !slices.ContainsFunc(pods, func(uid types.UID) bool { return !slices.Contains(f.pods, uid) }) {
		return now
	}
	if until := f.since.Add(f.pause); until.After(now) {
		return until
	}
	f.pods = pods
	f.since = now
	f.pause = min(max(2*f.pause, shortestPause), longestPause)
	return now
}
