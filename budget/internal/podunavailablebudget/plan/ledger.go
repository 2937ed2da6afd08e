package plan

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
)

const (
	// DisruptedLife is how long a granted deletion or eviction counts that is not seen to happen.
	DisruptedLife = 20 * time.Second
	// UnavailableLife is how long a granted change counts at least.
	UnavailableLife = 10 * time.Second
	// maxGrants is how many grants a budget can have that are not seen to be carried out yet.
	maxGrants = 2000
)

// Grant is an entry of the ledger.
type Grant struct {
	Pod string
	// UID of the pod; empty in entries that OpenKruise has written.
	UID types.UID
	// Disrupts is true for a deletion or eviction, false for a change.
	Disrupts bool
	// At is the time in the entry in seconds since 1970, by the clock of whoever granted.
	At int64
}

// Grants returns the entries of a status.
func Grants(s *v1beta1.PodUnavailableBudgetStatus) []Grant {
	all := make([]Grant, 0, len(s.DisruptedPods)+len(s.UnavailablePods))
	for name, at := range s.DisruptedPods {
		all = append(all, Grant{Pod: name, UID: s.PodUIDs[name], Disrupts: true, At: at.Unix()})
	}
	for name, at := range s.UnavailablePods {
		all = append(all, Grant{Pod: name, UID: s.PodUIDs[name], At: at.Unix()})
	}
	return all
}

// life is how long the grant counts if nothing is seen of it.
func (g Grant) life() time.Duration {
	if g.Disrupts {
		return DisruptedLife
	}
	return UnavailableLife
}

// Sights are the moments at which the process that counts has first seen entries. Entries expire by that process's
// clock alone: those of other machines may be wrong.
type Sights map[Grant]time.Time

// Next returns the sights of the entries of a status: earlier ones of those that it still has, now for new ones.
func (s Sights) Next(status *v1beta1.PodUnavailableBudgetStatus, now time.Time) Sights {
	next := Sights{}
	for _, g := range Grants(status) {
		if seen, ok := s[g]; ok {
			next[g] = seen
		} else {
			next[g] = now
		}
	}
	return next
}

// isDue reports whether the grant's life has passed.
func (s Sights) isDue(g Grant, now time.Time) bool {
	seen, ok := s[g]
	return ok && now.Sub(seen) >= g.life()
}

// passes reports whether the pod may be disrupted because a disruption of it has passed the budget. What another manager
// has written, OpenKruise or an earlier release, need not have passed it: it is taken for that while the floor holds.
func passes(s *v1beta1.PodUnavailableBudgetStatus, pod *corev1.Pod) bool {
	_, passed := s.Grants[pod.Name]
	return hasEntry(s, pod) && (passed || s.CurrentAvailable >= s.DesiredAvailable)
}

// hasEntry reports whether this very pod is in the ledger, so that it is charged.
func hasEntry(s *v1beta1.PodUnavailableBudgetStatus, pod *corev1.Pod) bool {
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

// record returns the status with an entry for the pod, whose disruption has passed the budget. The pod is charged unless it
// has an entry already. Nobody else may have one under its name.
func record(s *v1beta1.PodUnavailableBudgetStatus, pod *corev1.Pod, op v1beta1.PubOperation, now time.Time) *v1beta1.PodUnavailableBudgetStatus {
	next := *s
	if !hasEntry(s, pod) {
		next.CurrentAvailable = max(0, s.CurrentAvailable-1)
		next.UnavailableAllowed = allowed(&next)
	}
	at := metav1.NewTime(now).Rfc3339Copy()
	if op == v1beta1.DeleteOperation || op == v1beta1.EvictOperation {
		next.DisruptedPods = with(next.DisruptedPods, pod.Name, at)
	} else {
		next.UnavailablePods = with(next.UnavailablePods, pod.Name, at)
	}
	next.PodUIDs = with(s.PodUIDs, pod.Name, pod.UID)
	next.Grants = with(s.Grants, pod.Name, v1beta1.PodGrant{})
	return &next
}

// allowed is how many disruptions are shown as allowed: surplus pods do not raise it above what the budget allows. A
// minimum above the replicas allows surplus pods alone.
func allowed(s *v1beta1.PodUnavailableBudgetStatus) int32 {
	surplus := s.CurrentAvailable - s.DesiredAvailable
	if s.TotalReplicas >= s.DesiredAvailable {
		surplus = min(surplus, s.TotalReplicas-s.DesiredAvailable)
	}
	return max(0, surplus)
}

func with[V any](m map[string]V, key string, value V) map[string]V {
	c := maps.Clone(m)
	if c == nil {
		c = map[string]V{}
	}
	c[key] = value
	return c
}

func without[V any](m map[string]V, key string) map[string]V {
	if _, ok := m[key]; !ok {
		return m
	}
	c := maps.Clone(m)
	delete(c, key)
	return c
}
