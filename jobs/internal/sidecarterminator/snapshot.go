package sidecarterminator

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/plan/action"

	daemon "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/sidecarterminator/plan"
)

// passes read a pod, its node and the requests for it, and plan. Their memory only saves events.
type passes struct {
	// Reader reads pods and requests, Nodes reads nodes.
	Reader, Nodes *fastclient.Reader
	// Refusals returns the writes for an object that the server has refused.
	Refusals func(of client.Object, now time.Time) action.Refusals
	Clock    clock.PassiveClock
	// Served reports whether the cluster serves ContainerRecreateRequest and the operator may make some.
	Served bool
	told   told
}

// Look reads the objects that the plan for one pod needs, and plans.
func (p *passes) Look(ctx context.Context, key types.NamespacedName) (pass.Pass, error) {
	snap, err := p.snapshot(ctx, key)
	if err != nil {
		return pass.Pass{}, err
	}
	todo := plan.Compute(snap)
	todo.Notices = slices.DeleteFunc(todo.Notices, func(n action.Notice) bool { return p.told.before(snap.Pod, n) })
	return pass.Pass{Object: snap.Pod, Plan: todo}, nil
}

// snapshot reads the objects that the plan for one pod needs. Its error satisfies IsNotFound only when the pod is gone,
// or has no sidecars.
func (p *passes) snapshot(ctx context.Context, key types.NamespacedName) (plan.Snapshot, error) {
	pod, err := fastclient.Get[corev1.Pod](ctx, p.Reader, key)
	if err != nil {
		return plan.Snapshot{}, fmt.Errorf("read pod %s: %w", key, err)
	}
	s := plan.Snapshot{
		Pod:    pod,
		Served: p.Served,
		Now:    p.Clock.Now(),
	}
	if !plan.Due(pod) {
		return s, nil
	}
	s.Refusals = p.Refusals(pod, s.Now)
	if s.Node, err = p.node(ctx, pod.Spec.NodeName); err != nil || !p.Served {
		return s, err
	}
	s.Requests, err = fastclient.Controlled[daemon.ContainerRecreateRequest](ctx, p.Reader, pod)
	if err != nil {
		return s, fmt.Errorf("read the requests for pod %s: %w", key, err)
	}
	return s, nil
}

func (p *passes) node(ctx context.Context, name string) (plan.Node, error) {
	node, err := fastclient.Get[corev1.Node](ctx, p.Nodes, types.NamespacedName{Name: name})
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
