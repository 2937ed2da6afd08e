package workloadspread

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/subsets"
)

// sights remember when this process first saw each entry of a status: the clock of the webhook that wrote it may be
// wrong. It implements pass.Memory.
type sights struct {
	mu       sync.Mutex
	bySpread map[types.NamespacedName]sighted
}

type sighted struct {
	uid     types.UID
	entries map[subsets.Entry]time.Time
}

func newSights() *sights { return &sights{bySpread: map[types.NamespacedName]sighted{}} }

// look returns since when each entry of the status counts: from its first sight or, of a spread that is seen for the first
// time, from when it was written, but not later than now. The result must not be changed.
func (s *sights) look(spread *v1beta1.WorkloadSpread, now time.Time) map[subsets.Entry]time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := types.NamespacedName{Namespace: spread.Namespace, Name: spread.Name}
	before := s.bySpread[key]
	isNew := before.uid != spread.UID
	seen := map[subsets.Entry]time.Time{}
	note := func(e subsets.Entry, at metav1.Time) {
		since, ok := before.entries[e]
		switch {
		case ok && !isNew:
		case isNew && at.Time.Before(now):
			since = at.Time
		default:
			since = now
		}
		seen[e] = since
	}
	subsets.EachEntry(spread, note)
	s.bySpread[key] = sighted{spread.UID, seen}
	return seen
}

// Forget implements pass.Memory.
func (s *sights) Forget(spread types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.bySpread, spread)
}
