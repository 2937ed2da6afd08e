package advancedcronjob

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/progress"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/advancedcronjob/plan"
)

// passes read an AdvancedCronJob with a template of one kind, and its jobs, and plan. They hold no state.
type passes struct {
	kind   *kind
	Reader *fastclient.Reader
	// Refusals returns the writes for an object that the server has refused.
	Refusals func(of client.Object, now time.Time) action.Refusals
	Clock    clock.PassiveClock
	// Forbidden is nil where jobs of the kind are cached. Otherwise it reports whether the operator lacks the permission;
	// if it does not, the cluster does not serve the kind.
	Forbidden func() bool
}

// Look reads the objects of one AdvancedCronJob, and plans.
func (p *passes) Look(ctx context.Context, key types.NamespacedName) (pass.Pass, error) {
	snap, err := p.snapshot(ctx, key)
	if err != nil {
		return pass.Pass{}, err
	}
	todo := plan.Compute(snap)
	var made []plan.Child
	return pass.Pass{
		Object: snap.Cron,
		Plan:   todo.Plan,
		Err:    todo.Err,
		Do: func(_ context.Context, execute func() progress.Result) progress.Result {
			done := execute()
			made = p.made(&done)
			return done
		},
		SteadyPace: true, // a pause that grows would put off the next run, too
		Status: func(done action.Failures) client.Object {
			status := todo.Status(made, done)
			if status == nil {
				return nil
			}
			after := snap.Cron.DeepCopy()
			after.Status = *status
			return after
		},
	}, nil
}

// snapshot reads the objects of one AdvancedCronJob. Its error satisfies IsNotFound only when that is gone.
func (p *passes) snapshot(ctx context.Context, key types.NamespacedName) (plan.Snapshot, error) {
	s := plan.Snapshot{Now: p.Clock.Now()}
	var err error
	if s.Cron, err = fastclient.Get[v1beta1.AdvancedCronJob](ctx, p.Reader, key); err != nil {
		return s, fmt.Errorf("read advanced cron job %s: %w", key, err)
	}
	if p.Forbidden != nil {
		s.Forbidden = p.Forbidden()
		s.NotServed = !s.Forbidden
	} else if s.Children, err = p.kind.children(ctx, p.Reader, s.Cron); err != nil {
		return s, err
	}
	s.Refusals = p.Refusals(s.Cron, s.Now)
	return s, nil
}

// made returns the jobs that a plan has created.
func (p *passes) made(done *progress.Result) (jobs []plan.Child) {
	for i := range done.Outcomes {
		o := &done.Outcomes[i]
		if o.State == progress.Done && o.Action.Verb == action.Create {
			jobs = append(jobs, p.kind.child(o.Object))
		}
	}
	return jobs
}
