package containermeta

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/flotilla-project/flotilla/core/controllers/base"
	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/plan/action"
	planmemory "github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/containermeta/plan"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/containerstop"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/cri"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/metrics"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/retries"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/stops"
)

// controllerName is the name of the controller in logs.
const controllerName = "containermeta"

const (
	workers = 5
	// unavailablePeriod is when the next pass runs while the runtime does not answer.
	unavailablePeriod = 5 * time.Second
)

// Config has the settings and dependencies of the controller.
type Config struct {
	base.Settings
	// Node is the name of the node.
	Node     string
	Runtimes *cri.Runtimes
	Stopper  *containerstop.Stopper
	Metrics  *metrics.Metrics
	// Spread returns a time between 0 and its argument: pods that are older than the agent are not
	// all reported at once.
	Spread func(time.Duration) time.Duration
	// EnvFromMetadata enables reading environments and restarting containers.
	EnvFromMetadata bool
}

// reconciler keeps the annotation of pods.
type reconciler struct {
	*base.Controller
	config Config
	stops  *stops.Stops
	memory memory
}

// Pods returns the cache of the node's pods, trimmed by Trim.
func Pods(node string) cache.ByObject {
	return cache.ByObject{Field: fields.OneTermEqualSelector("spec.nodeName", node), Transform: trim}
}

// SetUp adds the controller to the manager. The manager's cache must hold pods as Pods defines.
func SetUp(ctx context.Context, mgr ctrl.Manager, config Config) error {
	base, err := base.New(ctx, mgr, base.Options{
		Settings: config.Settings, Controller: controllerName, EventRecorder: config.Stopper.Events,
		Kinds: map[client.Object]cache.ByObject{&corev1.Pod{}: Pods(config.Node)},
	})
	if err != nil {
		return err
	}
	r := &reconciler{Controller: base, config: config, stops: stops.New(config.Stopper, base.Clock, nil), memory: newMemory()}
	base.AddMemories(&r.memory, r.stops)
	if err := mgr.Add(r); err != nil {
		return fmt.Errorf("add the end of restarts: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             retries.Limiter(),
		}).
		Watches(&corev1.Pod{}, r.events()).
		Complete(r)
}

// Start waits for the restarts under way when the manager ends.
func (r *reconciler) Start(ctx context.Context) error {
	<-ctx.Done()
	r.stops.Wait()
	return nil
}

// Reconcile runs one pass over the pod of the request.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return r.Handle(ctx, req, r.pass)
}

// pass reads the objects of one pod, and plans.
func (r *reconciler) pass(ctx context.Context, key types.NamespacedName) (base.Pass, error) {
	pod, err := fastclient.Get[corev1.Pod](ctx, r.Reader, key)
	if err != nil {
		return base.Pass{}, err
	}
	pass := base.Pass{Object: pod}
	r.stops.Abort(key, func(id string) bool { return !plan.Wants(pod, id) })
	if pod.DeletionTimestamp != nil || !plan.NeedsAnnotation(pod) {
		return pass, nil
	}
	snapshot, containers, err := r.snapshot(ctx, pod)
	if cri.IsUnavailable(err) {
		pass.Plan.RequeueWithin(unavailablePeriod)
		return pass, nil
	}
	if err != nil {
		return base.Pass{}, err
	}
	todo := plan.Compute(snapshot)
	pass.Plan = todo.Plan
	pass.Executed = func(done *progress.Result) {
		r.config.Metrics.MetaPatches.Add(float64(done.Done(action.PatchStatus)))
		if !todo.Reported(done) {
			r.memory.remember(pod, remembered{outdated: snapshot.Outdated, unread: todo.Unread})
			return
		}
		r.memory.remember(pod, remembered{outdated: todo.Outdated, unread: todo.Unread})
		for _, id := range todo.Stop {
			r.stop(ctx, pod, containers, id)
		}
	}
	return pass, nil
}

// snapshot reads the pod's containers, and the environments that are not known yet.
func (r *reconciler) snapshot(ctx context.Context, pod *corev1.Pod) (plan.Snapshot, []cri.Container, error) {
	known := r.memory.of(pod)
	s := plan.Snapshot{Pod: pod, EnvFromMetadata: r.config.EnvFromMetadata, Outdated: known.outdated, Unread: known.unread, Now: r.Clock.Now()}
	s.Refusals = r.KnownRefusals(pod, nil, 0, s.Now)
	containers, err := r.config.Runtimes.Containers(ctx, pod.Namespace, pod.Name, idsOf(pod))
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
	for _, id := range plan.NeedEnv(s) {
		i := slices.IndexFunc(s.Containers, func(c plan.Container) bool { return c.ID == id })
		s.Containers[i].Env = r.env(ctx, id)
	}
	return s, containers, nil
}

// idsOf returns the IDs of the pod's containers in its status.
func idsOf(pod *corev1.Pod) []string {
	var ids []string
	for _, s := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses) {
		ids = append(ids, s.ContainerID)
	}
	return ids
}

// env reads an environment from the runtime, or from the container if the runtime does not report it. It returns nil
// if neither does.
func (r *reconciler) env(ctx context.Context, id string) map[string]string {
	runtime, err := r.config.Runtimes.ForContainer(id)
	if err != nil {
		return nil
	}
	status, err := runtime.Details(ctx, id)
	if err == nil && status.Env != nil {
		return status.Env
	}
	env, err := runtime.Env(ctx, id)
	if err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("Failed to read the environment of a container", "container", id, "reason", err.Error())
		return nil
	}
	return env
}

// stop begins the restart of a container. The pod's spec is not needed: the annotations of the
// kubelet on the container have everything.
func (r *reconciler) stop(ctx context.Context, pod *corev1.Pod, containers []cri.Container, id string) {
	i := slices.IndexFunc(containers, func(c cri.Container) bool { return c.ID == id })
	c := containers[i]
	request := containerstop.Request{
		Container: c, PreStop: c.PreStop, Ports: c.Ports, Grace: graceOf(&c), Reason: stopReason,
		Message: fmt.Sprintf("Stopping container %s: its in-place update restarts it", c.Name),
	}
	order := stops.Order{Pod: client.ObjectKeyFromObject(pod), For: planmemory.KeyOf(pod), Request: request}
	log := ctrl.LoggerFrom(ctx).WithValues("container", id)
	ended := func(_ context.Context, err error) {
		r.stops.DropEnded(order.Pod) // the plan decides when the container is stopped again
		switch {
		case errors.Is(err, containerstop.ErrAborted):
			log.Info("The restart is cancelled: the pod has changed")
		case err != nil:
			log.Error(err, "Failed to stop a container")
		}
	}
	r.stops.Hook(ctx, order, func(ctx context.Context, err error) {
		if err == nil && !r.wanted(ctx, pod, id) {
			r.stops.Abort(order.Pod, func(other string) bool { return other == id })
		}
		if err == nil && r.stops.Signal(ctx, order, ended) {
			return
		}
		ended(ctx, cmp.Or(err, containerstop.ErrAborted))
	})
}

// wanted reports whether the pod still wants a restart, as the server has it: the hook may have taken long, and the cache
// may lag. While the server does not answer, the cache decides.
func (r *reconciler) wanted(ctx context.Context, pod *corev1.Pod, id string) bool {
	key := client.ObjectKeyFromObject(pod)
	now := &corev1.Pod{}
	err := r.Live.Get(ctx, key, now)
	if err != nil && !apierrors.IsNotFound(err) {
		now, err = fastclient.Get[corev1.Pod](ctx, r.Reader, key)
	}
	return err == nil && now.UID == pod.UID && plan.Wants(now, id)
}
