package broadcastjob

import (
	"context"
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/broadcastjob/plan"
)

// snapshot reads all that the plan for a job is made from. The error satisfies IsNotFound only if the job is gone.
func (r *reconciler) snapshot(ctx context.Context, key types.NamespacedName) (plan.Snapshot, error) {
	job, err := fastclient.Get[v1beta1.BroadcastJob](ctx, r.Reader, key)
	if err != nil {
		return plan.Snapshot{}, fmt.Errorf("read broadcast job %s: %w", key, err)
	}
	now := r.Clock.Now()
	s := plan.Snapshot{
		Job: job, Owner: *metav1.NewControllerRef(job, kind()), Now: now, Bind: r.bind,
		Seed: rand.Uint64(), //nolint:gosec // a name needs no secrecy
	}
	if s.Pods, err = fastclient.Controlled[corev1.Pod](ctx, r.Reader, job); err != nil {
		return s, fmt.Errorf("read the pods of a broadcast job: %w", err)
	}
	s.Refusals = r.KnownRefusals(job, s.Pods, 0, now)
	if plan.Finished(job) {
		r.eligible.Forget(key)
		return s, nil
	}
	all, err := fastclient.All[corev1.Node](ctx, r.Reader, "")
	if err != nil {
		return s, fmt.Errorf("list nodes: %w", err)
	}
	s.Nodes = make([]plan.Node, len(all))
	for i, verdict := range r.eligible.Verdicts(job, all) {
		s.Nodes[i] = plan.Node{Node: all[i], Verdict: verdict}
	}
	return s, nil
}
