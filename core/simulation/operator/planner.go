package operator

import (
	"time"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/progress"
)

// Planner makes the plan of one pass: what to write, and when to plan again at the latest (0: at the next event). What
// it reads from the view is read-only. A planner that keeps something in memory between passes is a Restarter, too.
type Planner interface {
	Plan(view *View, now time.Time, seed uint64) (steps []action.Step, wake time.Duration)
}

// Restarter is a Planner with a memory.
type Restarter interface {
	// Restart empties the memory, as a new process would.
	Restart()
}

// Reporter is a Planner whose steps write no status: it is asked for the status once they have run, or ended early.
type Reporter interface {
	// Report returns the steps that write the status after the last plan.
	Report(done action.Failures) []action.Step
}

// Follower is a Planner that gets the outcomes of its actions.
type Follower interface {
	Followed(results []progress.Outcome)
}

// Finisher is a Planner that writes more at the end of a pass. What becomes of it has no consequences for the pass.
type Finisher interface {
	// Finally returns what to write.
	Finally() []action.Step
	// Finished gets what became of it, and returns when to plan again at the latest, 0 for never.
	Finished(done progress.Result) time.Duration
}

// Noticer is a Planner whose plans have notices.
type Noticer interface {
	// Notices returns the notices of the last plan, given whether its status was written if there was one to write.
	Notices(statusWritten bool) []action.Notice
}

// PlannerFunc is a Planner without a memory.
type PlannerFunc func(view *View, now time.Time, seed uint64) ([]action.Step, time.Duration)

// Plan calls f.
func (f PlannerFunc) Plan(view *View, now time.Time, seed uint64) ([]action.Step, time.Duration) {
	return f(view, now, seed)
}
