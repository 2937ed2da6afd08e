package broadcastjob

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/nodes"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// Options change how the controller works.
type Options struct {
	pass.Settings
	// Bind has pods name their nodes themselves; otherwise the scheduler binds them.
	Bind bool
}

// SetUp adds the controller to the manager: it reconciles a job after events of the job, of its pods, and of nodes with
// a changed verdict for it.
func SetUp(ctx context.Context, mgr ctrl.Manager, o Options) error {
	if err := addIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	b, err := pass.New(ctx, mgr, pass.Options{
		Settings:    o.Settings,
		Controller:  ControllerName,
		EventSource: "broadcastjob-controller",
		Kinds: map[client.Object]cache.ByObject{
			&v1beta1.BroadcastJob{}: fastclient.Within(o.Namespace, cache.ByObject{}),
			&corev1.Pod{}:           fastclient.Within(o.Namespace, Pods()),
		},
	})
	if err != nil {
		return err
	}
	r := &reconciler{Controller: b, passes: newPasses(sources{
		Reader: b.Reader,
		Clock:  b.Clock,
		Bind:   o.Bind,
		Seed:   rand.Uint64, //nolint:gosec // a name needs no secrecy
		Refusals: func(job *v1beta1.BroadcastJob, pods []*corev1.Pod, now time.Time) action.Refusals {
			return b.KnownRefusals(job, pods, 0, now)
		},
	})}
	b.AddMemories(r.passes.eligible)
	err = ctrl.NewControllerManagedBy(mgr).
		Named(ControllerName).
		For(&v1beta1.BroadcastJob{}).
		Watches(&corev1.Pod{}, podEvents()).
		Watches(&corev1.Node{}, nodes.Events(r.passes.nodeEvents)).
		WithOptions(o.Options(workers)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("make the controller: %w", err)
	}
	return nil
}
