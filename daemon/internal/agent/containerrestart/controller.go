package containerrestart

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/node"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/containerstop"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/cri"
)

// ControllerName is the name of the controller in logs.
const ControllerName = "containerrestart"

const (
	// workers is how many pods are looked at at a time. Stops do not hold a worker.
	workers = 32
	// stalePause is how long a pass waits for a cache that has not seen our last write yet, unless an event
	// comes first.
	stalePause = 2 * time.Second
	// awayPause is how long a pass waits for a runtime that does not answer.
	awayPause = 5 * time.Second
)

// Config is what a Reconciler works with.
type Config struct {
	// Client reads requests from the cache, which holds the active ones of this node, and writes to the server.
	Client client.Client
	// Live reads from the server: requests that are over, and their pods, while a stop of theirs is under way.
	Live     client.Reader
	Runtimes *cri.Runtimes
	Stopper  *containerstop.Stopper
	Clock    clock.Clock
}

// Reconciler carries out the requests. A key is a pod: its namespace and, in place of a name, its UID.
type Reconciler struct {
	Config
	memory memory
	wakeup chan event.TypedGenericEvent[ctrl.Request]
	ending chan struct{}
}

// New makes a Reconciler.
func New(config Config) *Reconciler {
	return &Reconciler{
		Config: config, memory: memory{pods: map[ctrl.Request]*pod{}},
		wakeup: make(chan event.TypedGenericEvent[ctrl.Request]), ending: make(chan struct{}),
	}
}

// SetUp adds the controller to the manager.
func (r *Reconciler) SetUp(mgr ctrl.Manager) error {
	if err := mgr.Add(r); err != nil {
		return fmt.Errorf("add the end of stops: %w", err)
	}
	requests := source.Kind(mgr.GetCache(), &v1beta1.ContainerRecreateRequest{},
		handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, request *v1beta1.ContainerRecreateRequest) []ctrl.Request {
			return []ctrl.Request{keyOf(request)}
		}))
	ended := source.TypedChannel(r.wakeup, handler.TypedEnqueueRequestsFromMapFunc(
		func(_ context.Context, key ctrl.Request) []ctrl.Request { return []ctrl.Request{key} }))
	return ctrl.NewControllerManagedBy(mgr).
		Named(ControllerName).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		WatchesRawSource(requests).
		WatchesRawSource(ended).
		Complete(r)
}

func keyOf(request *v1beta1.ContainerRecreateRequest) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Namespace: request.Namespace, Name: request.Labels[v1beta1.PodUIDLabel]}}
}

// Start waits for the stops under way when the manager ends.
func (r *Reconciler) Start(ctx context.Context) error {
	<-ctx.Done()
	close(r.ending)
	r.memory.wait()
	return nil
}

// wake has a pass made over a pod. When the agent ends nobody else makes one: what is under way goes on here.
func (r *Reconciler) wake(ctx context.Context, key ctrl.Request) {
	select {
	case r.wakeup <- event.TypedGenericEvent[ctrl.Request]{Object: key}:
	case <-r.ending:
		if _, err := r.Reconcile(ctx, key); err != nil {
			ctrl.LoggerFrom(ctx).Info("A stop is left to the next agent", "pod", key.Name, "reason", err.Error())
		}
	}
}

// Reconcile makes one pass over the requests for a pod.
func (r *Reconciler) Reconcile(ctx context.Context, key ctrl.Request) (ctrl.Result, error) {
	requests, err := r.requests(ctx, key)
	if err != nil {
		return ctrl.Result{}, err
	}
	if r.memory.ahead(requests) {
		return ctrl.Result{RequeueAfter: stalePause}, nil
	}
	over, err := r.over(ctx, key, requests)
	if err != nil {
		return ctrl.Result{}, err
	}
	requests = append(requests, over...)
	snapshot, containers, err := r.snapshot(ctx, key, requests)
	if err != nil {
		if cri.IsAway(err) {
			ctrl.LoggerFrom(ctx).Info("Requests wait for the container runtime", "reason", err.Error())
			return ctrl.Result{RequeueAfter: awayPause}, nil
		}
		return ctrl.Result{}, err
	}
	todo := node.Compute(snapshot)
	r.memory.abort(key, todo.Abort)
	for _, write := range todo.Writes {
		if pause := r.write(ctx, write); pause > 0 {
			return ctrl.Result{RequeueAfter: pause}, nil
		}
	}
	if todo.Hook != nil {
		r.hook(ctx, key, todo.Hook, containers)
	}
	if todo.Kill != nil {
		r.kill(ctx, key, todo.Kill, containers)
	}
	return ctrl.Result{RequeueAfter: todo.WakeAfter}, nil
}

// requests returns those for a pod that are not completed, as in the cache.
func (r *Reconciler) requests(ctx context.Context, key ctrl.Request) ([]*v1beta1.ContainerRecreateRequest, error) {
	var list v1beta1.ContainerRecreateRequestList
	err := r.Client.List(ctx, &list, client.InNamespace(key.Namespace),
		client.MatchingLabels{v1beta1.PodUIDLabel: key.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list requests for pod %s: %w", key.Name, err)
	}
	requests := make([]*v1beta1.ContainerRecreateRequest, len(list.Items))
	for i := range list.Items {
		requests[i] = &list.Items[i]
	}
	return requests, nil
}

// snapshot reads what the runtime has of the pod. Without requests nothing is read.
func (r *Reconciler) snapshot(ctx context.Context, key ctrl.Request, requests []*v1beta1.ContainerRecreateRequest) (node.Snapshot, []cri.Container, error) {
	now := r.Clock.Now()
	s := node.Snapshot{PodUID: types.UID(key.Name), Requests: requests, Now: now}
	var containers []cri.Container
	if len(requests) > 0 {
		all, err := r.Runtimes.Containers(ctx, key.Namespace, requests[0].Spec.PodName)
		if err != nil {
			return s, nil, err
		}
		containers = slices.DeleteFunc(all, func(c cri.Container) bool { return c.Pod.UID != s.PodUID })
	}
	for i := range containers {
		c, err := r.detail(ctx, &containers[i])
		if err != nil {
			return s, nil, err
		}
		s.Containers = append(s.Containers, c)
	}
	r.memory.remember(key, &s)
	if node.Asks(s) {
		var err error
		if s.PodGone, err = r.podGone(ctx, key, requests[0].Spec.PodName); err != nil {
			return s, nil, err
		}
	}
	return s, containers, nil
}

// detail adds the times that a list does not have.
func (r *Reconciler) detail(ctx context.Context, c *cri.Container) (node.Container, error) {
	out := node.Container{
		Name: c.Name, ID: c.ID, RestartCount: c.RestartCount, CreatedAt: c.CreatedAt,
		Running: c.State == cri.StateRunning, Exited: c.State == cri.StateExited,
	}
	runtime, err := r.Runtimes.Of(c.ID)
	if err != nil {
		return out, err
	}
	status, err := runtime.Status(ctx, c.ID)
	if cri.IsGone(err) {
		return out, nil // removed since it was listed
	}
	if err != nil {
		return out, err
	}
	out.StartedAt, out.FinishedAt = status.StartedAt, status.FinishedAt
	return out, nil
}

// graceBegan reports whether the manager has made the pod not ready for a request.
func graceBegan(request *v1beta1.ContainerRecreateRequest) bool {
	return meta.IsStatusConditionTrue(request.Status.Conditions, v1beta1.PreRecreateGrace)
}
