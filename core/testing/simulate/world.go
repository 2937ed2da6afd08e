package simulate

import (
	"time"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/nodes"
)

// World is a simulated cluster that is watched: what must not happen in it is recorded as a violation.
type World struct {
	*nodes.World

	limits    []limit
	agents    *agentJudge
	operators uint64
	seen      map[string]int // events of a kind that the operator's last view contained
	sent      time.Time      // when the operator sent the request that is under way
	edits     int            // of users, so far as they were announced
	acts      int            // of foreign actors
	passes    int            // of operators
	without   cuts           // what is left out to tell a shorter story
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

// OnEvent calls hook after every write that changed something.
func (w *World) OnEvent(hook func(*World, cluster.Event)) {
	w.World.OnEvent(func(e cluster.Event) { hook(w, e) })
}

// known returns what the operator can know when it sends a write: its last view and its own writes, at that moment.
func (w *World) known() *cluster.View {
	now := w.sent
	if now.IsZero() {
		now = w.Now()
	}
	return w.Known(cluster.OperatorActor, w.seen, now)
}
