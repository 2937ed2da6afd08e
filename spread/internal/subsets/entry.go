package subsets

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
)

// Entry identifies a place that is kept for a pod, or the note of a deletion.
type Entry struct {
	Version, Subset, ID string
	Deleting            bool
	At                  int64 // seconds, as it was written
}

// Creating is the entry of a pod that was admitted to the subset.
func Creating(version, subset, id string, at metav1.Time) Entry {
	return Entry{
		Version: version,
		Subset:  subset,
		ID:      id,
		At:      at.Unix(),
	}
}

// Deleting is the entry of a pod that leaves the subset.
func Deleting(version, subset, name string, at metav1.Time) Entry {
	return Entry{
		Version:  version,
		Subset:   subset,
		ID:       name,
		Deleting: true,
		At:       at.Unix(),
	}
}

// EachEntry calls visit for all entries of a status, with the time that each was written with.
func EachEntry(spread *v1beta1.WorkloadSpread, visit func(Entry, metav1.Time)) {
	for version, list := range spread.Status.VersionedSubsetStatuses {
		for i := range list {
			for id, at := range list[i].CreatingPods {
				visit(Creating(version, list[i].Name, id, at), at)
			}
			for name, at := range list[i].DeletingPods {
				visit(Deleting(version, list[i].Name, name, at), at)
			}
		}
	}
}
