package frame

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/workloads/model"
)

// Pass is one run of the controller over one set.
type Pass[S any] struct {
	pass.Pass
	// Seen is the input of the plan, and Todo the plan.
	Seen S
	Todo model.Plan
	// Update is the name of the update revision; empty if there is none. The images of this revision are pulled ahead.
	Update string
}

// Executed tracks lost pods and counts the outcomes of the plan of the set.
func (c *Controller) Executed(set client.Object, outcomes []progress.Outcome) {
	key, now := memory.KeyOf(set), c.Clock.Now()
	c.Orphans.Follow(key, outcomes, now)
	c.Meter.Executed(key, outcomes, now)
}
