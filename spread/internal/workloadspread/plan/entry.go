package plan

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
)

// Entry identifies a place that is kept for a pod, or the note of a deletion.
type Entry struct {
	Version, Subset, ID string
	Deleting            bool
	At                  int64 // seconds, as it was written
}

func creating(version, subset, id string, at metav1.Time) Entry {
	return Entry{Version: version, Subset: subset, ID: id, At: at.Unix()}
}

func deleting(version, subset, name string, at metav1.Time) Entry {
	return Entry{Version: version, Subset: subset, ID: name, Deleting: true, At: at.Unix()}
}

// EachEntry calls visit for all entries of a status, with the time that each was written with.
func EachEntry(spread *v1beta1.WorkloadSpread, visit func(Entry, metav1.Time)) {
	for version, list := range spread.Status.VersionedSubsetStatuses {
		for i := range list {
			for id, at := range list[i].CreatingPods {
				visit(creating(version, list[i].Name, id, at), at)
			}
			for name, at := range list[i].DeletingPods {
				visit(deleting(version, list[i].Name, name, at), at)
			}
		}
	}
}

// left returns how much is left of the life of an entry. It begins when the entry was first seen, and now for an entry that
// was not seen before.
func (c *computation) left(e Entry, written metav1.Time, life time.Duration) time.Duration {
	since := written.Time
	if c.Seen != nil {
		var ok bool
		if since, ok = c.Seen[e]; !ok {
			since = c.Now
		}
	}
	return since.Add(life).Sub(c.Now)
}
