package disruption

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
)

const (
	// Life is how long a grant counts of which nothing is seen: for as long as an API server handles the request, 34 seconds
	// at most, and one that came up to FreshFor later.
	Life = 34*time.Second + FreshFor
	// UnavailableLife is how long a granted change counts at least.
	UnavailableLife = 10 * time.Second
	// MaxGrants is how many grants a budget can have that are not seen to be carried out yet.
	MaxGrants = 2000
)

// Grant is an entry of the ledger.
type Grant struct {
	Pod string
	// UID of the pod; empty in entries that OpenKruise has written.
	UID types.UID
	// Disrupts is true for a deletion or eviction, false for a change.
	Disrupts bool
	// At is the time in the entry in seconds since 1970, by the clock of the process that granted last.
	At int64
	// Of is the resourceVersion of the pod at the last granted change; empty if that is not known.
	Of string
}

// Grants returns the entries of a status.
func Grants(s *v1beta1.PodUnavailableBudgetStatus) []Grant {
	all := make([]Grant, 0, len(s.DisruptedPods)+len(s.UnavailablePods))
	for name, at := range s.DisruptedPods {
		all = append(all, Grant{
			Pod:      name,
			UID:      s.PodUIDs[name],
			Disrupts: true,
			At:       at.Unix(),
		})
	}
	for name, at := range s.UnavailablePods {
		all = append(all, Grant{
			Pod: name,
			UID: s.PodUIDs[name],
			At:  at.Unix(),
			Of:  s.Grants[name].ResourceVersion,
		})
	}
	return all
}

// isSeen reports whether the pod is newer than the pod of the granted change: API servers carry a change out on the version
// for which it was granted, and ask again for another one.
func (g Grant) isSeen(pod *corev1.Pod) bool {
	order, err := resourceversion.CompareResourceVersion(g.Of, pod.ResourceVersion)
	return err == nil && order < 0
}

// Sights are the moments at which the process that counts has seen entries. Entries expire by that process's clock alone:
// the clocks of other machines may be wrong.
type Sights map[Entry]sight

// Entry is a place in the ledger, however often it is renewed.
type Entry struct {
	pod      string
	uid      types.UID
	disrupts bool
}

// Entry is the place of the grant.
func (g Grant) Entry() Entry { return Entry{g.Pod, g.UID, g.Disrupts} }

// sight is when an entry was first seen, and when as it is.
type sight struct {
	First, Last time.Time
	as          Grant
}

// Next returns the sights of the entries of a status: earlier ones of those that it still has, now for new and renewed
// ones.
func (s Sights) Next(status *v1beta1.PodUnavailableBudgetStatus, now time.Time) Sights {
	next := Sights{}
	for _, g := range Grants(status) {
		seen, ok := s[g.Entry()]
		if !ok {
			seen.First = now
		}
		if seen.as != g {
			seen.Last, seen.as = now, g
		}
		next[g.Entry()] = seen
	}
	return next
}

// Left returns how much longer the grant counts by its age: nothing if it ends when the pod has settled.
func (s Sights) Left(g Grant, pod *corev1.Pod, now time.Time) time.Duration {
	life := Life
	if !g.Disrupts && g.isSeen(pod) {
		life = UnavailableLife
	}
	return s[g.Entry()].Last.Add(life).Sub(now)
}

// AreWorn reports whether the entry was renewed until the first request for it could have no effect any more.
func (s Sights) AreWorn(g Grant, now time.Time) bool {
	seen := s[g.Entry()]
	return seen.Last.After(seen.First) && now.Sub(seen.First) >= Life
}

// passes reports whether the pod may be disrupted because a disruption of it has passed the budget. An entry of another
// manager, OpenKruise or an earlier release, need not have passed it: it counts as passed while the floor holds.
func passes(s *v1beta1.PodUnavailableBudgetStatus, pod *corev1.Pod) bool {
	_, passed := s.Grants[pod.Name]
	return HasEntry(s, pod) && !isClosed(s, pod) && (passed || s.CurrentAvailable >= s.DesiredAvailable)
}

// isClosed reports whether the pod's entry was renewed for long enough.
func isClosed(s *v1beta1.PodUnavailableBudgetStatus, pod *corev1.Pod) bool {
	return HasEntry(s, pod) && s.Grants[pod.Name].Closed
}

// HasEntry reports whether this very pod is in the ledger, so that it is charged.
func HasEntry(s *v1beta1.PodUnavailableBudgetStatus, pod *corev1.Pod) bool {
	_, disrupted := s.DisruptedPods[pod.Name]
	_, unavailable := s.UnavailablePods[pod.Name]
	uid := s.PodUIDs[pod.Name]
	return (disrupted || unavailable) && (uid == "" || uid == pod.UID)
}

// isTaken reports whether the ledger has an entry under the pod's name that is another pod's, an earlier or a later one.
func isTaken(s *v1beta1.PodUnavailableBudgetStatus, pod *corev1.Pod) bool {
	uid, ok := s.PodUIDs[pod.Name]
	return ok && uid != pod.UID
}

// Record returns the status with an entry for the pod after its disruption has passed the budget. The pod is charged unless
// it has an entry already. No other pod may have one under its name.
func Record(s *v1beta1.PodUnavailableBudgetStatus, pod *corev1.Pod, op v1beta1.PubOperation, now time.Time) *v1beta1.PodUnavailableBudgetStatus {
	next := *s
	if !HasEntry(s, pod) {
		next.CurrentAvailable = max(0, s.CurrentAvailable-1)
		next.UnavailableAllowed = Allowed(&next)
	}
	grant := s.Grants[pod.Name]
	if op == v1beta1.DeleteOperation || op == v1beta1.EvictOperation {
		next.DisruptedPods = With(next.DisruptedPods, pod.Name, renewed(s.DisruptedPods[pod.Name], now))
	} else {
		next.UnavailablePods = With(next.UnavailablePods, pod.Name, renewed(s.UnavailablePods[pod.Name], now))
		grant.ResourceVersion = newest(grant.ResourceVersion, pod.ResourceVersion)
	}
	next.PodUIDs = With(s.PodUIDs, pod.Name, pod.UID)
	next.Grants = With(s.Grants, pod.Name, grant)
	return &next
}

// renewed returns the time of an entry that is written now, which is another one than before: who counts has to see it.
func renewed(before metav1.Time, now time.Time) metav1.Time {
	at := metav1.NewTime(now).Rfc3339Copy()
	if at.Equal(&before) {
		at = metav1.NewTime(at.Add(time.Second))
	}
	return at
}

// newest returns the newer one of two resourceVersions, of which the first may be empty.
func newest(a, b string) string {
	if order, err := resourceversion.CompareResourceVersion(a, b); err == nil && order > 0 {
		return a
	}
	return b
}

// Allowed is how many disruptions are shown as allowed: surplus pods do not raise it above the number that the budget
// allows. A minimum above the replicas allows surplus pods alone.
func Allowed(s *v1beta1.PodUnavailableBudgetStatus) int32 {
	surplus := s.CurrentAvailable - s.DesiredAvailable
	if s.TotalReplicas >= s.DesiredAvailable {
		surplus = min(surplus, s.TotalReplicas-s.DesiredAvailable)
	}
	return max(0, surplus)
}

// With is the map with the value under the key. The map stays as it is.
func With[V any](m map[string]V, key string, value V) map[string]V {
	c := maps.Clone(m)
	if c == nil {
		c = map[string]V{}
	}
	c[key] = value
	return c
}

// Without is the map without the key. The map stays as it is.
func Without[V any](m map[string]V, key string) map[string]V {
	if _, ok := m[key]; !ok {
		return m
	}
	c := maps.Clone(m)
	delete(c, key)
	return c
}
