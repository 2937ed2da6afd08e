package plan

import (
	"github.com/flotilla-project/flotilla/spread/internal/subsets"
)

// Numbers are the values of a spread's metrics.
type Numbers struct {
	Subsets []SubsetNumbers
	// Without is how many active pods are in no subset.
	Without int
}

// SubsetNumbers are the values of a subset's metrics, of all versions together.
type SubsetNumbers struct {
	Name string
	// Active is how many active pods it has, and Coming how many places it keeps for pods that are not there yet.
	Active, Coming int
	// Limit is how many pods of a version it may have, or Unlimited.
	Limit int32
	// Closed is true if it gets no pods, because some could not be scheduled.
	Closed bool
}

// Numbers returns the numbers of the pass.
func (p Plan) Numbers() Numbers {
	c := p.made
	n := Numbers{Without: len(c.withoutSubset())}
	for i, total := range p.Status.SubsetStatuses {
		s := SubsetNumbers{
			Name:   total.Name,
			Active: int(total.Replicas),
			Limit:  c.limits[i],
			Closed: subsets.IsUnschedulable(total.Conditions),
		}
		for _, list := range p.Status.VersionedSubsetStatuses {
			s.Coming += len(list[i].CreatingPods)
		}
		n.Subsets = append(n.Subsets, s)
	}
	return n
}
