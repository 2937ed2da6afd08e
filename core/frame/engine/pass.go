package engine

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/base"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/workloads/model"
)

// Pass is one run of the controller over one workload: its input and its plan.
type Pass struct {
	// Workload is the object as it was read.
	Workload client.Object
	// Plan has the actions of the pass. The pass is not repeated for its Err, because only an edit helps.
	Plan model.Plan
	// Update is the name of the update revision; empty if there is none. The images of this revision are pulled ahead.
	Update string
	// Status returns the workload with its next status, given the outcome of the plan.
	Status func(done action.Failures) client.Object
}

// Handle runs one pass over the workload of a request, as base.Controller.Handle does. look reads and plans.
func (e *Engine) Handle(ctx context.Context, req ctrl.Request, look func(context.Context, types.NamespacedName) (Pass, error)) (ctrl.Result, error) {
	return e.Controller.Handle(ctx, req, func(ctx context.Context, name types.NamespacedName) (base.Pass, error) {
		p, err := look(ctx, name)
		if err != nil {
			return base.Pass{}, err
		}
		return e.pass(p), nil
	})
}

// pass returns the pass for base.Controller, with the additions of workloads: lost pods are tracked, outcomes are
// counted, and image pull jobs are written.
func (e *Engine) pass(p Pass) base.Pass {
	all := base.Pass{
		Object: p.Workload, Plan: p.Plan.Plan, Err: p.Plan.Err, Status: p.Status,
		Do: func(_ context.Context, execute func() progress.Result) progress.Result {
			done := execute()
			e.Executed(p.Workload, done.Outcomes)
			return done
		},
	}
	if p.Update != "" {
		all.After = func(ctx context.Context, _ bool) time.Duration {
			return e.PullJobs.Run(ctx, p.Workload, p.Update, p.Plan.PreDownload)
		}
	}
	return all
}

// Executed tracks lost pods and counts the outcomes of the plan of the workload.
func (e *Engine) Executed(workload client.Object, outcomes []progress.Outcome) {
	key, now := memory.KeyOf(workload), e.Clock.Now()
	e.Orphans.Follow(key, outcomes, now)
	e.Meter.Executed(key, outcomes, now)
}
