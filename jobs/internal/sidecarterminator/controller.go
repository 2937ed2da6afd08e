package sidecarterminator

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/flotilla-project/flotilla/core/controllers/base"
	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/plan/action"

	daemon "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/sidecarterminator/plan"
)

// reconciler stops the sidecars of pods. It holds no state that the cluster does not hold.
type reconciler struct {
	*base.Controller
	told   *told
	served bool
	over   func() bool // whether another reconciler has taken over
}

// Reconcile runs one pass over a pod.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if r.over() {
		return ctrl.Result{}, nil
	}
	return r.Handle(ctx, req, r.pass)
}

func (r *reconciler) pass(ctx context.Context, key types.NamespacedName) (base.Pass, error) {
	snap, err := r.snapshot(ctx, key)
	if err != nil {
		return base.Pass{}, err
	}
	todo := plan.Compute(snap)
	todo.Notices = slices.DeleteFunc(todo.Notices, func(n action.Notice) bool { return r.told.before(snap.Pod, n) })
	return base.Pass{Object: snap.Pod, Plan: todo}, nil
}

// snapshot reads the objects that the plan for one pod needs. Its error satisfies IsNotFound only when the pod is gone,
// or has no sidecars.
func (r *reconciler) snapshot(ctx context.Context, key types.NamespacedName) (plan.Snapshot, error) {
	pod, err := fastclient.Get[corev1.Pod](ctx, r.Reader, key)
	if err != nil {
		return plan.Snapshot{}, err
	}
	s := plan.Snapshot{Pod: pod, Served: r.served, Now: r.Clock.Now()}
	if !plan.Due(pod) {
		return s, nil
	}
	s.Refusals = r.KnownRefusals(pod, nil, 0, s.Now)
	if s.Node, err = r.node(ctx, pod.Spec.NodeName); err != nil || !r.served {
		return s, err
	}
	s.Requests, err = fastclient.Controlled[daemon.ContainerRecreateRequest](ctx, r.Reader, pod)
	if err != nil {
		return s, fmt.Errorf("read the requests for a pod: %w", err)
	}
	return s, nil
}

func (r *reconciler) node(ctx context.Context, name string) (plan.Node, error) {
	node, err := fastclient.Get[corev1.Node](ctx, r.Reader, types.NamespacedName{Name: name})
	switch {
	case apierrors.IsNotFound(err):
		return plan.NodeUnknown, nil
	case err != nil:
		return plan.NodeUnknown, fmt.Errorf("read node %s: %w", name, err)
	case node.Labels[daemon.NodeTypeLabel] == daemon.VirtualKubelet:
		return plan.NodeVirtual, nil
	}
	return plan.NodeReal, nil
}
