package broadcastjob

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/base"
	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/nodes"
	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/broadcastjob/plan"
)

// ControllerName is the name of the controller in logs, metrics and its user agent.
const ControllerName = "broadcastjob"

// workers is how many jobs are reconciled at a time by default.
const workers = 3

func kind() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind(v1beta1.BroadcastJobKind) }

// reconciler reconciles BroadcastJobs. It holds no state that the cluster does not hold; which nodes are eligible it
// only remembers.
type reconciler struct {
	*base.Controller
	eligible *eligible
	bind     bool
}

// Options change how the controller works.
type Options struct {
	base.Settings
	// Bind has pods name their nodes themselves; otherwise the scheduler binds them.
	Bind bool
}

// SetUp adds the controller to the manager: it reconciles a job after events of the job, of its pods, and of nodes with
// a changed verdict for it.
func SetUp(ctx context.Context, mgr ctrl.Manager, o Options) error {
	if err := fastclient.IndexOwners(ctx, mgr.GetFieldIndexer(), &corev1.Pod{}); err != nil {
		return err
	}
	b, err := base.New(ctx, mgr, base.Options{
		Settings: o.Settings, Controller: ControllerName, EventSource: "broadcastjob-controller",
		Kinds: map[client.Object]cache.ByObject{
			&v1beta1.BroadcastJob{}: fastclient.Within(o.Namespace, cache.ByObject{}),
			&corev1.Pod{}:           fastclient.Within(o.Namespace, Pods()),
		},
	})
	if err != nil {
		return err
	}
	r := &reconciler{Controller: b, eligible: newEligible(), bind: o.Bind}
	b.AddMemories(r.eligible)
	err = ctrl.NewControllerManagedBy(mgr).
		Named(ControllerName).
		For(&v1beta1.BroadcastJob{}).
		Watches(&corev1.Pod{}, podEvents()).
		Watches(&corev1.Node{}, nodes.Events(r.nodeEvents)).
		WithOptions(o.Options(workers)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("make the controller: %w", err)
	}
	return nil
}

// Reconcile runs one pass over a job.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return r.Handle(ctx, req, r.pass)
}

func (r *reconciler) pass(ctx context.Context, key types.NamespacedName) (base.Pass, error) {
	snap, err := r.snapshot(ctx, key)
	if err != nil {
		return base.Pass{}, err
	}
	todo := plan.Compute(snap)
	return base.Pass{Object: snap.Job, Plan: todo.Plan, Err: todo.Err, Status: func(done action.Failures) client.Object {
		status := todo.Status(done)
		if status == nil {
			return nil
		}
		after := snap.Job.DeepCopy()
		after.Status = *status
		return after
	}}, nil
}
