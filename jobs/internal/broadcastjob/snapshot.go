package broadcastjob

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/broadcastjob/plan"
)

// sources are where passes read from, and their settings.
type sources struct {
	Reader *fastclient.Reader
	// Refusals returns the writes for a job that the server has refused.
	Refusals func(job *v1beta1.BroadcastJob, pods []*corev1.Pod, now time.Time) action.Refusals
	Clock    clock.PassiveClock
	// Seed returns what determines the names of the new pods of a pass.
	Seed func() uint64
	// Bind has new pods name their nodes themselves.
	Bind bool
}

// passes read the objects of a job, and plan. They hold no state that the cluster does not hold; which nodes are eligible
// they only remember.
type passes struct {
	sources
	eligible *eligible
}

func newPasses(s sources) *passes { return &passes{sources: s, eligible: newEligible()} }

// Look reads the objects of one job, and plans.
func (p *passes) Look(ctx context.Context, key types.NamespacedName) (pass.Pass, error) {
	snap, err := p.snapshot(ctx, key)
	if err != nil {
		return pass.Pass{}, err
	}
	todo := plan.Compute(snap)
	return pass.Pass{
		Object: snap.Job,
		Plan:   todo.Plan,
		Err:    todo.Err,
		Status: func(done action.Failures) client.Object {
			status := todo.Status(done)
			if status == nil {
				return nil
			}
			after := snap.Job.DeepCopy()
			after.Status = *status
			return after
		},
	}, nil
}

// snapshot reads all that the plan for a job is made from. The error satisfies IsNotFound only if the job is gone.
func (p *passes) snapshot(ctx context.Context, key types.NamespacedName) (plan.Snapshot, error) {
	job, err := fastclient.Get[v1beta1.BroadcastJob](ctx, p.Reader, key)
	if err != nil {
		return plan.Snapshot{}, fmt.Errorf("read broadcast job %s: %w", key, err)
	}
	now := p.Clock.Now()
	s := plan.Snapshot{
		Job:   job,
		Owner: *metav1.NewControllerRef(job, kind()),
		Now:   now,
		Bind:  p.Bind,
		Seed:  p.Seed(),
	}
	if s.Pods, err = fastclient.Controlled[corev1.Pod](ctx, p.Reader, job); err != nil {
		return s, fmt.Errorf("read the pods of a broadcast job: %w", err)
	}
	s.Refusals = p.Refusals(job, s.Pods, now)
	if plan.Finished(job) {
		p.eligible.Forget(key)
		return s, nil
	}
	all, err := fastclient.All[corev1.Node](ctx, p.Reader, "")
	if err != nil {
		return s, fmt.Errorf("list nodes: %w", err)
	}
	s.Nodes = make([]plan.Node, len(all))
	for i, verdict := range p.eligible.Verdicts(job, all) {
		s.Nodes[i] = plan.Node{Node: all[i], Verdict: verdict}
	}
	return s, nil
}
