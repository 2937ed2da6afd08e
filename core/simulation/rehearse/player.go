package rehearse

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/frame"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/informers"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/workloads/model"
)

// Options describe what is played.
type Options[T any, P fastclient.Object[T], S any] struct {
	// Set names the set whose plans are played.
	Set types.NamespacedName
	// Workload makes the kind of the set with its plan. Each new operator asks for it anew, the first one when it plans.
	Workload func() *frame.Workload[T, P, S]
	// Judge is called with every plan. Optional.
	Judge func(seen S, todo model.Plan)
}

// Player plays the plans of a set. It implements operator.Planner and all that a planner may be besides.
type Player[T any, P fastclient.Object[T], S any] struct {
	options Options[T, P, S]
	world   *cluster.World
	process *process[T, P, S] // nil before it plans
	pass    frame.Pass[S]     // the last one, empty where there is no set
}

// process is the operator that plans, with its memories.
type process[T any, P fastclient.Object[T], S any] struct {
	workload   *frame.Workload[T, P, S]
	cache      *informers.Cache
	controller *frame.Controller
}

// New returns a player of the world.
func New[T any, P fastclient.Object[T], S any](w *cluster.World, o Options[T, P, S]) *Player[T, P, S] {
	return &Player[T, P, S]{options: o, world: w}
}

// Restart is a new operator.
func (p *Player[T, P, S]) Restart() { p.process = nil }

// Plan reads the snapshot from the view and returns what the workload wants.
func (p *Player[T, P, S]) Plan(view *operator.View, _ time.Time, _ uint64) ([]action.Step, time.Duration) {
	p.pass = frame.Pass[S]{}
	pass, err := p.look(view)
	if apierrors.IsNotFound(err) {
		p.process = nil // nothing is left to remember
		return nil, 0
	}
	if err != nil {
		p.world.Violate("no snapshot: %v", err)
		return nil, 0
	}
	view.PlanFor(pass.Object)
	p.pass = pass
	if p.options.Judge != nil {
		p.options.Judge(pass.Seen, pass.Todo)
	}
	return pass.Plan.Steps, pass.Plan.RequeueAfter
}

func (p *Player[T, P, S]) look(view *operator.View) (frame.Pass[S], error) {
	if p.process == nil {
		started, err := start(p.world, p.options.Workload())
		if err != nil {
			return frame.Pass[S]{}, fmt.Errorf("start the operator: %w", err)
		}
		p.process = started
	}
	o := p.process
	o.cache.Show(view.View)
	o.controller.Refusals = view.Tracker()
	return o.workload.Look(quiet(), o.controller, p.options.Set)
}

// Followed gets what became of the last plan.
func (p *Player[T, P, S]) Followed(results []progress.Outcome) {
	if p.pass.Object != nil {
		p.process.controller.Executed(p.pass.Object, results)
	}
}

// Report returns the write of the status that follows from the last plan.
func (p *Player[T, P, S]) Report(done action.Failures) []action.Step {
	if p.pass.Object == nil {
		return nil
	}
	after := p.pass.Status(done.WithDeferred(p.pass.Plan.Deferred))
	return []action.Step{operator.StatusStep(p.pass.Object, operator.StatusOf(after))}
}

// Notices returns what the last plan tells users.
func (p *Player[T, P, S]) Notices(statusWritten bool) []action.Notice {
	return p.pass.Plan.NoticesToRecord(statusWritten)
}

// Finally returns the writes by which images are pulled ahead.
func (p *Player[T, P, S]) Finally() []action.Step {
	if p.pass.Update == "" {
		return nil
	}
	return p.pass.Todo.PreDownload.Steps
}

// Finished gets what became of them.
func (p *Player[T, P, S]) Finished(done progress.Result) time.Duration {
	if p.pass.Update == "" {
		return 0
	}
	return p.process.controller.PullJobs.Executed(quiet(), p.pass.Object, p.pass.Update, p.pass.Todo.PreDownload, done)
}

// quiet is a context whose logs go nowhere: stories tell what happens.
func quiet() context.Context { return log.IntoContext(context.Background(), logr.Discard()) }

// start starts the operator of a workload, with nothing remembered.
func start[T any, P fastclient.Object[T], S any](w *cluster.World, workload *frame.Workload[T, P, S]) (*process[T, P, S], error) {
	options := workload.CacheOptions("")
	o := &process[T, P, S]{workload: workload, cache: informers.New(w, options)}
	if err := frame.AddIndexes(quiet(), o.cache, options); err != nil {
		return nil, err
	}
	if workload.Indexes != nil {
		if err := workload.Indexes(quiet(), o.cache); err != nil {
			return nil, err
		}
	}
	var err error
	o.controller, err = frame.Assemble(controller(w, o.cache), frame.Parts{
		Cache:      o.cache,
		Discovery:  discovery{},
		Metrics:    prometheus.NewRegistry(),
		Controller: workload.Name,
		PodLabel:   workload.PodLabel,
	})
	return o, err
}
