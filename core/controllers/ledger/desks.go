package ledger

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// turn is how long an object is remembered at least after the last question about it; two turns are the most. By then
	// it is most likely gone.
	turn = 10 * time.Minute
	// mostDesks is how many objects are asked about in a turn, before it ends early.
	mostDesks = 5_000
)

// desks are those of the objects that were asked about in this turn and in the one before. Nothing is lost with one that is
// forgotten.
type desks[D any] struct {
	began           time.Time
	present, former map[types.UID]*D
}

// of returns the desk of an object.
func (all *desks[D]) of(object types.UID, now time.Time) *D {
	switch since := now.Sub(all.began); {
	case all.present == nil, since >= 2*turn:
		*all = desks[D]{began: now, present: map[types.UID]*D{}}
	case since >= turn, len(all.present) >= mostDesks:
		*all = desks[D]{began: now, present: map[types.UID]*D{}, former: all.present}
	}
	d := all.present[object]
	if d == nil {
		if d = all.former[object]; d == nil {
			d = new(D)
		}
		all.present[object] = d
	}
	return d
}
