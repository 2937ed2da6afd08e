package simnodes

import "sync/atomic"

// Counts are what the simulation has done since Start.
type Counts struct {
	// Reports are status updates of pods that the server took.
	Reports int64
	// Ready is how often a report turned a pod ready.
	Ready int64
	// Bound and Removed are pods assigned to a node and pods taken off the server after their end.
	Bound, Removed int64
}

type counters struct {
	reports, ready, bound, removed atomic.Int64
}

// Counts returns what was done so far.
func (n *Nodes) Counts() Counts {
	c := &n.counts
	return Counts{
		Reports: c.reports.Load(),
		Ready:   c.ready.Load(),
		Bound:   c.bound.Load(),
		Removed: c.removed.Load(),
	}
}
