package recreate

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-project/flotilla/core/events"
	"github.com/flotilla-project/flotilla/core/execute"
	"github.com/flotilla-project/flotilla/core/fastclient"
	"github.com/flotilla-project/flotilla/core/freshness"
	"github.com/flotilla-project/flotilla/core/status"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/plan"
)

// reconciler does the manager's part of requests. It holds no state.
type reconciler struct {
	live      client.Reader
	reader    *fastclient.Reader
	freshness *freshness.Gate
	executor  *execute.Executor
	status    status.Writer
	events    *events.Recorder
	clock     clock.PassiveClock
}

// Reconcile runs one pass over the request that the key names.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if wait := r.freshness.Wait(req.NamespacedName); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	request, err := fastclient.Get[v1beta1.ContainerRecreateRequest](ctx, r.reader, req.NamespacedName)
	if apierrors.IsNotFound(err) {
		r.freshness.Forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	pod, err := r.pod(ctx, request)
	if err != nil {
		return ctrl.Result{}, err
	}
	todo := plan.Compute(plan.Snapshot{Request: request, Pod: pod, Now: r.clock.Now()})
	if !todo.Empty() {
		log.FromContext(ctx).V(2).Info("pass", "plan", todo.String())
	}
	done := r.executor.Run(ctx, request, todo.Steps)
	if done.Err != nil {
		return ctrl.Result{}, done.Err
	}
	todo.Wake(done.RetryAfter)
	again, err := r.writeStatus(ctx, request, todo)
	if err != nil {
		return ctrl.Result{}, err
	}
	todo.Wake(again)
	return ctrl.Result{RequeueAfter: todo.WakeAfter}, nil
}

// pod is the pod of the request's name, nil when there is none. A request is completed for good when its pod
// is not there, so where the cache, which may lag behind the one of requests, does not show it, the server is
// asked.
func (r *reconciler) pod(ctx context.Context, request *v1beta1.ContainerRecreateRequest) (*corev1.Pod, error) {
	key := types.NamespacedName{Namespace: request.Namespace, Name: request.Spec.PodName}
	pod, err := fastclient.Get[corev1.Pod](ctx, r.reader, key)
	if err == nil && string(pod.UID) == request.Labels[v1beta1.PodUIDLabel] || !plan.Active(request) {
		return pod, client.IgnoreNotFound(err)
	}
	pod = &corev1.Pod{}
	err = r.live.Get(ctx, key, pod)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get pod %s: %w", key, err)
	}
	return pod, nil
}

// writeStatus patches the status when it changed. A refused patch met another version of the request; the
// returned time is when to look again at the latest.
func (r *reconciler) writeStatus(ctx context.Context, request *v1beta1.ContainerRecreateRequest, todo plan.Plan) (again time.Duration, err error) {
	if equality.Semantic.DeepEqual(request.Status, todo.Status) {
		return 0, nil
	}
	after := request.DeepCopy()
	after.Status = todo.Status
	wrote, err := r.status.Patch(ctx, request, after)
	if err != nil {
		return 0, fmt.Errorf("patch status: %w", err)
	}
	if !wrote {
		return execute.StaleRetry, nil
	}
	r.events.Tell(request, todo.Notices, &execute.Outcome{})
	return 0, nil
}
