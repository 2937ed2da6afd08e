package containermeta

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/flotilla-project/flotilla/core/contract"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/containermeta/plan"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/containerstop"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/cri"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/metrics"
)

// ControllerName is the name of the controller in logs.
const ControllerName = "containermeta"

const (
	workers = 5
	// A pass that failed is tried again in growing distance.
	firstRetry, longestRetry = 500 * time.Millisecond, 55 * time.Second
	// stalePause is how long a pass waits for a cache that has not seen our last write yet, unless an event
	// comes first.
	stalePause = 5 * time.Second
	// awayPause is how long a pass waits for a runtime that does not answer.
	awayPause = 5 * time.Second
)

// Config is what a Reconciler works with.
type Config struct {
	// Client reads pods from the cache, which holds those of this node trimmed by Trim, and writes to the server.
	Client   client.Client
	Runtimes *cri.Runtimes
	Stopper  *containerstop.Stopper
	Metrics  *metrics.Metrics
	Clock    clock.Clock
	// Spread returns a time between 0 and its argument: pods that were there before the agent are reported
	// one by one.
	Spread func(time.Duration) time.Duration
	// EnvFromMetadata looks at environments and restarts containers.
	EnvFromMetadata bool
}

// Reconciler keeps the annotation of pods.
type Reconciler struct {
	Config
	memory memory
}

// New makes a Reconciler.
func New(config Config) *Reconciler { return &Reconciler{Config: config, memory: newMemory()} }

// SetUp adds the controller to the manager.
func (r *Reconciler) SetUp(mgr ctrl.Manager) error {
	if err := mgr.Add(r); err != nil {
		return fmt.Errorf("add the end of restarts: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(ControllerName).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstRetry, longestRetry),
		}).
		Watches(&corev1.Pod{}, r.events()).
		Complete(r)
}

// Start waits for the restarts under way when the manager ends.
func (r *Reconciler) Start(ctx context.Context) error {
	<-ctx.Done()
	r.memory.wait()
	return nil
}

// Reconcile makes one pass over a pod.
func (r *Reconciler) Reconcile(ctx context.Context, key ctrl.Request) (ctrl.Result, error) {
	pod := &corev1.Pod{}
	err := r.Client.Get(ctx, key.NamespacedName, pod, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		r.memory.forget(key.NamespacedName)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("read pod %s: %w", key, err)
	}
	if pod.DeletionTimestamp != nil || !plan.Reports(pod) {
		return ctrl.Result{}, nil
	}
	if r.memory.ahead(pod) {
		return ctrl.Result{RequeueAfter: stalePause}, nil
	}
	snapshot, containers, err := r.snapshot(ctx, pod)
	if cri.IsAway(err) {
		return ctrl.Result{RequeueAfter: awayPause}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	todo := plan.Compute(snapshot)
	if todo.Annotation != "" {
		if pause, err := r.write(ctx, pod, todo.Annotation); pause > 0 || err != nil {
			return ctrl.Result{RequeueAfter: pause}, err
		}
	}
	r.memory.remember(pod, todo.Outdated)
	for _, id := range todo.Stop {
		r.stop(ctx, containers, id)
	}
	return ctrl.Result{RequeueAfter: todo.WakeAfter}, nil
}

// snapshot reads the pod's containers, and the environments that are not known yet.
func (r *Reconciler) snapshot(ctx context.Context, pod *corev1.Pod) (plan.Snapshot, []cri.Container, error) {
	s := plan.Snapshot{Pod: pod, EnvFromMetadata: r.EnvFromMetadata, Outdated: r.memory.outdated(pod), Now: r.Clock.Now()}
	containers, err := r.Runtimes.Containers(ctx, pod.Namespace, pod.Name)
	if err != nil {
		return s, nil, fmt.Errorf("list containers of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	containers = slices.DeleteFunc(containers, func(c cri.Container) bool { return c.Pod.UID != pod.UID })
	for i := range containers {
		c := &containers[i]
		s.Containers = append(s.Containers, plan.Container{
			Name: c.Name, ID: c.ID, RestartCount: c.RestartCount, Hash: c.Hash, Running: c.State == cri.StateRunning,
		})
	}
	for _, id := range plan.Unread(s) {
		i := slices.IndexFunc(s.Containers, func(c plan.Container) bool { return c.ID == id })
		s.Containers[i].Env = r.env(ctx, id)
	}
	return s, containers, nil
}

// env asks the runtime for an environment, and the container where the runtime does not tell. It returns nil
// when neither says.
func (r *Reconciler) env(ctx context.Context, id string) map[string]string {
	runtime, err := r.Runtimes.Of(id)
	if err != nil {
		return nil
	}
	status, err := runtime.Status(ctx, id)
	if err == nil && status.Env != nil {
		return status.Env
	}
	env, err := runtime.Env(ctx, id)
	if err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("Environment cannot be read", "container", id, "reason", err.Error())
		return nil
	}
	return env
}

// write patches the annotation through the status: the agent may not change pods. It returns 0 when that is done,
// and otherwise when to try.
func (r *Reconciler) write(ctx context.Context, pod *corev1.Pod, annotation string) (pause time.Duration, err error) {
	if left := r.memory.refused(pod).Left(pod.ResourceVersion, r.Clock.Now()); left > 0 {
		return left, nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":         pod.UID,
		"annotations": map[string]string{contract.RuntimeContainersMetaAnnotation: annotation},
	}})
	if err != nil {
		return 0, fmt.Errorf("make patch of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	written := &corev1.Pod{}
	written.Namespace, written.Name = pod.Namespace, pod.Name
	err = r.Client.Status().Patch(ctx, written, client.RawPatch(types.StrategicMergePatchType, patch))
	if err != nil {
		outdated := apierrors.IsNotFound(err) || apierrors.IsConflict(err) // the latter: a pod of the same name
		if !outdated {
			ctrl.LoggerFrom(ctx).Error(err, "Annotation cannot be written")
		}
		return r.memory.refuse(pod, outdated, r.Clock.Now()), nil
	}
	r.Metrics.MetaPatches.Inc()
	r.memory.wrote(written)
	return 0, nil
}

// stop begins the restart of a container. The pod's spec is not needed: the kubelet has written on the
// container what it takes to stop it.
func (r *Reconciler) stop(ctx context.Context, containers []cri.Container, id string) {
	i := slices.IndexFunc(containers, func(c cri.Container) bool { return c.ID == id })
	c := containers[i]
	order := containerstop.Order{
		Container: c, PreStop: c.PreStop, Ports: c.Ports, Grace: graceOf(&c), Reason: stopReason,
		Message: fmt.Sprintf("Stopping container %s: metadata that its environment reads has changed", c.Name),
	}
	log := ctrl.LoggerFrom(ctx).WithValues("container", id)
	ctx = context.WithoutCancel(ctx)
	r.memory.stop(id, func() {
		if err := r.Stopper.Stop(ctx, order); err != nil {
			log.Error(err, "Container cannot be stopped")
		}
	})
}
