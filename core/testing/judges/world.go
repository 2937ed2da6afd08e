package judges

import (
	"time"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/nodes"
)

// World is a simulated cluster that is watched: what must not happen in it is recorded as a violation.
type World struct {
	*nodes.World

	limits []limit
	agents *agentJudge
	seen   map[string]int // events of a kind that the operator's last view contained
	sent   time.Time      // when the operator sent the request that is under way
}

// New makes a world with objects that exist from the start. They keep their UIDs and status.
func New(options cluster.Options, objects ...action.Object) *World {
	w := &World{World: nodes.New(options, objects...)}
	w.AroundWrites(func(actor string) func(cluster.Event) {
		before := w.measure(actor)
		return func(e cluster.Event) { w.checkLimits(e, before) }
	})
	return w
}

// Sees sets the operator's last view, as the number of events of each kind that it contains. The map may change later; a kind
// that it lacks is seen in its present state.
func (w *World) Sees(events map[string]int) { w.seen = events }

// Sends sets the time at which the operator sent the request that is under way, or the first one of the same action; the
// zero time if there is none.
func (w *World) Sends(at time.Time) { w.sent = at }

// known returns what the operator can know when it sends a write: its last view and its own writes, at that moment.
func (w *World) known() *cluster.View {
	now := w.sent
	if now.IsZero() {
		now = w.Now()
	}
	return w.Known(cluster.OperatorActor, w.seen, now)
}
