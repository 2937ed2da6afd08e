package simulate

import (
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/judges"
)

// World is a simulated cluster that is judged, and in which users and foreign actors make changes.
type World struct {
	*judges.World

	operators uint64
	edits     int  // of users, so far as they were announced
	acts      int  // of foreign actors
	passes    int  // of operators
	without   cuts // what is left out to tell a shorter story
}

// New makes a world with objects that exist from the start. They keep their UIDs and status.
func New(options cluster.Options, objects ...action.Object) *World {
	return &World{World: judges.New(options, objects...)}
}

// OnEvent calls hook after every write that changed something.
func (w *World) OnEvent(hook func(*World, cluster.Event)) {
	w.World.OnEvent(func(e cluster.Event) { hook(w, e) })
}
