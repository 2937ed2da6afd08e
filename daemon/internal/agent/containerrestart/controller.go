package containerrestart

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/flotilla-project/flotilla/core/controllers/base"
	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/node"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/containerstop"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/cri"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/retries"
)

// controllerName is the name of the controller in logs.
const controllerName = "containerrestart"

const (
	// workers is how many passes run at a time. Stops do not occupy a worker.
	workers = 32
	// unavailablePeriod is when the next pass runs while the runtime does not answer.
	unavailablePeriod = 5 * time.Second
	// podIndex holds the UID of the pod of a request.
	podIndex = "podUID"
)

// Config has the settings and dependencies of the controller.
type Config struct {
	base.Settings
	// Node is the name of the node.
	Node     string
	Runtimes *cri.Runtimes
	Stopper  *containerstop.Stopper
}

// reconciler carries out the requests. A key is a pod: its namespace and, in place of a name, its UID.
type reconciler struct {
	*base.Controller
	config Config
	memory memory
	wakeup chan event.TypedGenericEvent[ctrl.Request]
	ending chan struct{}
}

// Requests returns the cache of the active requests of the node.
func Requests(node string) cache.ByObject {
	return cache.ByObject{
		Label:     labels.SelectorFromSet(labels.Set{v1beta1.NodeNameLabel: node, v1beta1.ActiveLabel: "true"}),
		Transform: fastclient.Trim,
	}
}

// SetUp adds the controller to the manager. The manager's cache must hold requests as Requests defines.
func SetUp(ctx context.Context, mgr ctrl.Manager, config Config) error {
	err := mgr.GetFieldIndexer().IndexField(ctx, &v1beta1.ContainerRecreateRequest{}, podIndex, func(o client.Object) []string {
		return []string{o.GetLabels()[v1beta1.PodUIDLabel]}
	})
	if err != nil {
		return fmt.Errorf("index requests by pod: %w", err)
	}
	base, err := base.New(ctx, mgr, base.Options{
		Settings: config.Settings, Controller: controllerName, EventRecorder: config.Stopper.Events,
		Kinds: map[client.Object]cache.ByObject{&v1beta1.ContainerRecreateRequest{}: Requests(config.Node)},
	})
	if err != nil {
		return err
	}
	r := &reconciler{
		Controller: base, config: config, memory: memory{pods: map[types.NamespacedName]*pod{}},
		wakeup: make(chan event.TypedGenericEvent[ctrl.Request]), ending: make(chan struct{}),
	}
	base.AddMemories(&r.memory)
	if err := mgr.Add(r); err != nil {
		return fmt.Errorf("add the end of stops: %w", err)
	}
	requests := source.Kind(mgr.GetCache(), &v1beta1.ContainerRecreateRequest{},
		handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, request *v1beta1.ContainerRecreateRequest) []ctrl.Request {
			return []ctrl.Request{{NamespacedName: keyOf(request)}}
		}))
	ended := source.TypedChannel(r.wakeup, handler.TypedEnqueueRequestsFromMapFunc(
		func(_ context.Context, key ctrl.Request) []ctrl.Request { return []ctrl.Request{key} }))
	return ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: retries.Limiter()}).
		WatchesRawSource(requests).
		WatchesRawSource(ended).
		Complete(r)
}

func keyOf(request *v1beta1.ContainerRecreateRequest) types.NamespacedName {
	return types.NamespacedName{Namespace: request.Namespace, Name: request.Labels[v1beta1.PodUIDLabel]}
}

// podOf returns an object for the pod of a key, under which refusals are remembered. Its name is the name in the key.
func podOf(key types.NamespacedName) *metav1.PartialObjectMetadata {
	pod := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	return pod
}

// Start waits for the stops under way when the manager ends.
func (r *reconciler) Start(ctx context.Context) error {
	<-ctx.Done()
	close(r.ending)
	r.memory.wait()
	return nil
}

// wake requests a pass over a pod. When the agent ends, the controller runs no passes: then wake runs it.
func (r *reconciler) wake(ctx context.Context, key types.NamespacedName) {
	req := ctrl.Request{NamespacedName: key}
	select {
	case r.wakeup <- event.TypedGenericEvent[ctrl.Request]{Object: req}:
	case <-r.ending:
		if _, err := r.Reconcile(ctx, req); err != nil {
			ctrl.LoggerFrom(ctx).Info("A stop is left to the next agent", "pod", key.Name, "reason", err.Error())
		}
	}
}

// Reconcile runs one pass over the requests for a pod.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return r.Handle(ctx, req, r.pass)
}

// pass reads the objects of one pod, and plans.
func (r *reconciler) pass(ctx context.Context, key types.NamespacedName) (base.Pass, error) {
	pass := base.Pass{Object: podOf(key)}
	requests, err := fastclient.ByIndex[v1beta1.ContainerRecreateRequest](ctx, r.Reader, key.Namespace, podIndex, key.Name)
	if err != nil {
		return pass, fmt.Errorf("list requests for pod %s: %w", key.Name, err)
	}
	over, err := r.completedRequests(ctx, key, requests)
	if err != nil {
		return pass, err
	}
	snapshot, containers, err := r.snapshot(ctx, key, slices.Concat(requests, over))
	switch {
	case cri.IsUnavailable(err):
		ctrl.LoggerFrom(ctx).Info("Requests wait for the container runtime", "reason", err.Error())
		pass.Plan.RequeueWithin(unavailablePeriod)
		return pass, nil
	case err != nil:
		return pass, err
	case len(snapshot.Requests) == 0 && len(snapshot.Stops) == 0:
		return pass, apierrors.NewNotFound(v1beta1.GroupVersion.WithResource("containerrecreaterequests").GroupResource(), key.Name)
	}
	todo := node.Compute(snapshot)
	r.memory.abort(key, todo.Abort)
	pass.Plan = todo.Plan
	pass.Executed = func(done *progress.Result) {
		r.memory.addMaybeBegun(key, todo.Doubtful(done))
		r.memory.dropStale(key, done)
		if todo.Hook != nil && todo.Written(todo.Hook, done) {
			r.hook(ctx, key, todo.Hook, containers)
		}
		if todo.Kill != nil && todo.Written(todo.Kill, done) {
			r.kill(ctx, key, todo.Kill, containers)
		}
	}
	return pass, nil
}

// snapshot reads the containers of the pod from the runtime. Without requests nothing is read.
func (r *reconciler) snapshot(ctx context.Context, key types.NamespacedName, requests []*v1beta1.ContainerRecreateRequest) (node.Snapshot, []cri.Container, error) {
	now := r.Clock.Now()
	s := node.Snapshot{PodUID: types.UID(key.Name), Requests: requests, Refusals: r.KnownRefusals(podOf(key), nil, 0, now), Now: now}
	var containers []cri.Container
	if len(requests) > 0 {
		all, err := r.config.Runtimes.Containers(ctx, key.Namespace, requests[0].Spec.PodName)
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
	if node.NeedsPodGone(s) {
		var err error
		if s.PodGone, err = r.podGone(ctx, key, requests[0].Spec.PodName); err != nil {
			return s, nil, err
		}
	}
	return s, containers, nil
}

// detail adds the times, which are not in the list.
func (r *reconciler) detail(ctx context.Context, c *cri.Container) (node.Container, error) {
	out := node.Container{
		Name: c.Name, ID: c.ID, RestartCount: c.RestartCount, CreatedAt: c.CreatedAt,
		Running: c.State == cri.StateRunning, Exited: c.State == cri.StateExited,
	}
	runtime, err := r.config.Runtimes.ForContainer(c.ID)
	if err != nil {
		return out, err
	}
	status, err := runtime.Status(ctx, c.ID)
	if cri.IsNotFound(err) {
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
