package subsets

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
)

const (
	// CreatingLife is how long a place is kept for a pod that does not appear.
	CreatingLife = 30 * time.Second
	// recycleAge is how old a place is at least that another pod takes over: by then the status counts the pod that it was
	// kept for, if that was created at once, and the webhook knows how many pods are wanted. Times have whole seconds.
	recycleAge = 3 * time.Second
	// mostAsked is how many of the oldest places are looked at for one that is left: each may cost a read of a pod.
	mostAsked = 8
	// DeletingLife is how long a deletion that was admitted may take to begin.
	DeletingLife = 15 * time.Second
)

// MostVersions is how many versions have places of their own. Labels of pods contain the version, and any client may write
// them.
const MostVersions = 50

// None is the index of no subset.
const None = -1

// Books have the ledgers of all versions of the pods.
type Books struct {
	// Counted returns how many active pods of a version there are by subset, for subsets that the status does not know yet:
	// a spread that was created again has pods in its subsets already. Nil means none.
	Counted func(version string) map[string]int32

	spread  *v1beta1.WorkloadSpread
	limits  []int32
	ledgers map[string]*Ledger
}

// Open returns the books of a spread. Close changes its status: it must not belong to a cache.
func Open(spread *v1beta1.WorkloadSpread, limits []int32) *Books {
	return &Books{spread: spread, limits: limits, ledgers: map[string]*Ledger{}}
}

// Spread returns the spread of the books.
func (b *Books) Spread() *v1beta1.WorkloadSpread { return b.spread }

// Ledger returns the ledger of a version. Every subset of the spec is in it. Versions beyond a large number share one.
func (b *Books) Ledger(version string) *Ledger {
	known := b.spread.Status.VersionedSubsetStatuses
	if _, ok := known[version]; !ok && b.ledgers[version] == nil && len(known)+len(b.ledgers) >= MostVersions {
		version = v1beta1.VersionIgnored
	}
	l := b.ledgers[version]
	if l == nil {
		l = &Ledger{limits: b.limits, Entries: Entries(b.spread, b.spread.Status.VersionedSubsetStatuses[version])}
		b.count(version, l.Entries)
		b.ledgers[version] = l
	}
	return l
}

// count counts the pods of the subsets that the status does not know.
func (b *Books) count(version string, all []v1beta1.SubsetStatus) {
	known := b.spread.Status.VersionedSubsetStatuses[version]
	var counted map[string]int32
	for i := range all {
		e := &all[i]
		isKnown := slices.ContainsFunc(known, func(s v1beta1.SubsetStatus) bool { return s.Name == e.Name })
		if isKnown || b.limits[i] == Unlimited || b.Counted == nil {
			continue
		}
		if counted == nil {
			counted = b.Counted(version)
		}
		e.Replicas = counted[e.Name]
	}
}

// Close writes the changes into the status, and reports whether there are any.
func (b *Books) Close() (changed bool) {
	for version, l := range b.ledgers {
		if !l.changed {
			continue
		}
		changed = true
		for i := range l.Entries {
			l.Entries[i].MissingReplicas = Room(l.limits[i], &l.Entries[i])
		}
		if b.spread.Status.VersionedSubsetStatuses == nil {
			b.spread.Status.VersionedSubsetStatuses = map[string][]v1beta1.SubsetStatus{}
		}
		b.spread.Status.VersionedSubsetStatuses[version] = l.Entries
	}
	return changed
}

// PassedOver reports whether a pod went past a subset because that was full. It never comes back: the books should be new.
func (b *Books) PassedOver() bool {
	for _, l := range b.ledgers {
		if l.passedOver {
			return true
		}
	}
	return false
}

// Ledger has the places of the subsets for the pods of one version.
type Ledger struct {
	limits  []int32
	Entries []v1beta1.SubsetStatus
	changed bool

	passedOver bool // a subset was full, and a pod went on
}

// Entries returns copies of the entries of all subsets in the order of the spec. A new version begins with the known state
// of the nodes: the condition of the totals.
func Entries(spread *v1beta1.WorkloadSpread, from []v1beta1.SubsetStatus) []v1beta1.SubsetStatus {
	all := make([]v1beta1.SubsetStatus, len(spread.Spec.Subsets))
	for i := range all {
		name := spread.Spec.Subsets[i].Name
		all[i].Name = name
		is := func(s v1beta1.SubsetStatus) bool { return s.Name == name }
		if j := slices.IndexFunc(from, is); j >= 0 {
			from[j].DeepCopyInto(&all[i])
		} else if j := slices.IndexFunc(spread.Status.SubsetStatuses, is); j >= 0 {
			all[i].Conditions = slices.Clone(spread.Status.SubsetStatuses[j].Conditions)
		}
	}
	return all
}

// Admit gives a pod a place in the first subset that has one and is not closed, and returns its index or None. The id is
// the pod's name or, if it has none yet, its uid; one that has a place already gets the same. A place of a pod that is
// being deleted counts only once gone reports that this pod does not run any more: the deletion may have been refused after
// it was noted.
func (l *Ledger) Admit(id string, now metav1.Time, gone func(name string) bool) int {
	if i := l.placeOf(id); i != None {
		return i
	}
	if i := l.leftBy(id); i != None && !IsUnschedulable(l.Entries[i].Conditions) && l.hasPlace(i, gone) {
		l.reserve(i, id, now)
		return i
	}
	for i := range l.Entries {
		e := &l.Entries[i]
		switch {
		case IsUnschedulable(e.Conditions):
			continue
		case l.limits[i] == Unlimited:
			return i
		case l.hasPlace(i, gone):
			l.reserve(i, id, now)
			return i
		}
		l.passedOver = true
	}
	return None
}

// Has reports whether a place is kept under the id.
func (l *Ledger) Has(id string) bool { return l.placeOf(id) != None }

func (l *Ledger) placeOf(id string) int {
	return slices.IndexFunc(l.Entries, func(s v1beta1.SubsetStatus) bool {
		_, ok := s.CreatingPods[id]
		return ok
	})
}

// leftBy returns the subset that a pod of the name is leaving: its successor of the same name gets into the same.
func (l *Ledger) leftBy(name string) int {
	return slices.IndexFunc(l.Entries, func(s v1beta1.SubsetStatus) bool {
		_, ok := s.DeletingPods[name]
		return ok
	})
}

// Recycle frees the oldest place that a refused creation has left if more places are kept than pods can still come: this is another
// try. The place of a pod with a name is left once gone reports that there is no such pod. wanted returns how many pods the version
// has at most, and whether that is known; it is asked only if there is a place that is old enough.
func (l *Ledger) Recycle(now metav1.Time, gone func(name string) bool, wanted func() (most int32, known bool)) {
	var present int32
	var old []place
	since := now.Add(-recycleAge)
	for i := range l.Entries {
		e := &l.Entries[i]
		present += e.Replicas + int32(len(e.CreatingPods)) - int32(len(e.DeletingPods))
		for id, at := range e.CreatingPods {
			if !at.After(since) {
				old = append(old, place{i, id, at.Time})
			}
		}
	}
	if len(old) == 0 {
		return
	}
	if most, known := wanted(); !known || present < most {
		return
	}
	slices.SortFunc(old, func(a, b place) int { return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.id, b.id)) })
	for _, p := range old[:min(len(old), mostAsked)] {
		if isUID(p.id) || gone(p.id) {
			delete(l.Entries[p.subset].CreatingPods, p.id)
			l.changed = true
			return
		}
	}
}

// place is one that is kept for a pod under way.
type place struct {
	subset int
	id     string
	since  time.Time
}

// isUID reports whether the id of a place is one that was made up for a pod without a name.
func isUID(id string) bool {
	return len(id) == 36 && id[8] == '-' && id[13] == '-' && id[18] == '-' && id[23] == '-'
}

// hasPlace asks about pods that are being deleted only if there is no other place.
func (l *Ledger) hasPlace(i int, gone func(string) bool) bool {
	e := &l.Entries[i]
	left := l.limits[i] - e.Replicas - int32(len(e.CreatingPods))
	if left > 0 {
		return true
	}
	if left+int32(len(e.DeletingPods)) <= 0 {
		return false
	}
	for _, name := range slices.Sorted(maps.Keys(e.DeletingPods)) {
		if gone(name) {
			left++
		}
		if left > 0 {
			return true
		}
	}
	return false
}

func (l *Ledger) reserve(i int, id string, now metav1.Time) {
	e := &l.Entries[i]
	if e.CreatingPods == nil {
		e.CreatingPods = map[string]metav1.Time{}
	}
	e.CreatingPods[id] = now
	l.changed = true
}

// Leave notes that a pod of a limited subset is being deleted, unless it is noted already or not counted yet. The pod
// must have been active when the spread had this version.
func (l *Ledger) Leave(subset, name, uid string, now metav1.Time) {
	i := slices.IndexFunc(l.Entries, func(s v1beta1.SubsetStatus) bool { return s.Name == subset })
	if i < 0 || l.limits[i] == Unlimited {
		return
	}
	e := &l.Entries[i]
	_, deleting := e.DeletingPods[name]
	_, creating := e.CreatingPods[name]
	_, unnamed := e.CreatingPods[uid]
	if deleting || creating || uid != "" && unnamed || int(e.Replicas) <= len(e.DeletingPods) {
		return
	}
	if e.DeletingPods == nil {
		e.DeletingPods = map[string]metav1.Time{}
	}
	e.DeletingPods[name] = now
	l.changed = true
}

// IsUnschedulable reports whether the conditions of a subset tell that it takes no pods.
func IsUnschedulable(conditions []metav1.Condition) bool {
	return meta.IsStatusConditionFalse(conditions, v1beta1.SubsetSchedulable)
}
