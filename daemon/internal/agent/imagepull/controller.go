package imagepull

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/cri"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/events"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/imagepull/plan"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/metrics"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/refusal"
)

// ControllerName is the name of the controller in logs and user agents.
const ControllerName = "imagepull"

const (
	// The status is written so often at most: a node with many tags must not drown the API server.
	writesPerSecond, writeBurst = 0.5, 5
	heldBackPause               = 2 * time.Second
	// A pass comes so long after the last while tags are unfinished, and otherwise.
	busyPause, idlePause = 4 * time.Second, 25 * time.Minute
)

// Config is what a Reconciler works with.
type Config struct {
	// Node is the name of the node, and of its NodeImage.
	Node string
	// Client reads NodeImages from the cache and writes to the server.
	Client      client.Client
	Runtimes    *cri.Runtimes
	Credentials Credentials
	Events      *events.Recorder
	Metrics     *metrics.Metrics
	Clock       clock.Clock
	// Jitter changes a pause a little, so that nodes that failed together do not try again together.
	Jitter func(time.Duration) time.Duration
	// Slots is how many pulls may run at a time; 0 or less means any number.
	Slots int
}

// Reconciler keeps the pulls in step with the NodeImage.
type Reconciler struct {
	Config
	pulls   *pulls
	limiter flowcontrol.RateLimiter
	wakeup  chan event.GenericEvent
	written *v1beta1.NodeImage // as the server answered our last write
	refused refusal.Refusal    // of the status
}

// New makes a Reconciler.
func New(config Config) *Reconciler {
	r := &Reconciler{
		Config:  config,
		limiter: flowcontrol.NewTokenBucketRateLimiter(writesPerSecond, writeBurst),
		wakeup:  make(chan event.GenericEvent, 1),
	}
	r.pulls = &pulls{wake: r.Wake, puller: &puller{
		node: config.Node, runtimes: config.Runtimes, credentials: config.Credentials, clock: config.Clock, jitter: config.Jitter,
	}}
	config.Metrics.PullWorkers.Set(float64(max(config.Slots, 0)))
	return r
}

// SetUp adds the controller to the manager, whose cache holds the node's own NodeImage and no other.
func (r *Reconciler) SetUp(mgr ctrl.Manager) error {
	if err := mgr.Add(r); err != nil {
		return fmt.Errorf("add the end of pulls: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(ControllerName).
		For(&v1beta1.NodeImage{}).
		WatchesRawSource(source.Channel(r.wakeup, handler.EnqueueRequestsFromMapFunc(
			func(context.Context, client.Object) []ctrl.Request {
				return []ctrl.Request{{NamespacedName: types.NamespacedName{Name: r.Node}}}
			}))).
		Complete(r)
}

// Start ends the pulls when the manager ends.
func (r *Reconciler) Start(ctx context.Context) error {
	<-ctx.Done()
	r.pulls.stop()
	return nil
}

// Wake asks for a pass soon.
func (r *Reconciler) Wake() {
	select {
	case r.wakeup <- event.GenericEvent{Object: &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: r.Node}}}:
	default: // a pass that has not begun yet will see what we have seen
	}
}

// Reconcile makes one pass over the NodeImage of the node.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	snapshot, err := r.snapshot(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	todo := plan.Compute(snapshot)
	r.pulls.follow(ctx, &todo)
	if snapshot.Image == nil {
		return ctrl.Result{}, nil
	}
	r.measure(todo.Status)
	pause, err := r.writeStatus(ctx, snapshot.Image, &todo)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case pause > 0:
		return ctrl.Result{RequeueAfter: pause}, nil
	case todo.Unfinished:
		return ctrl.Result{RequeueAfter: r.Jitter(busyPause)}, nil
	default:
		return ctrl.Result{RequeueAfter: r.Jitter(idlePause)}, nil
	}
}

func (r *Reconciler) snapshot(ctx context.Context) (plan.Snapshot, error) {
	s := plan.Snapshot{Pulls: r.pulls.list(), Slots: r.Slots, Now: r.Clock.Now()}
	if err := r.Runtimes.Ready(); err != nil {
		s.NoRuntime = err.Error()
	}
	image := &v1beta1.NodeImage{}
	err := r.Client.Get(ctx, client.ObjectKey{Name: r.Node}, image)
	if apierrors.IsNotFound(err) {
		r.written = nil
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("read node image %s: %w", r.Node, err)
	}
	s.Image = r.newest(image)
	return s, nil
}

// newest returns the cached object, or the answer to our last write while the cache lags behind it.
func (r *Reconciler) newest(cached *v1beta1.NodeImage) *v1beta1.NodeImage {
	if r.written == nil || r.written.UID != cached.UID {
		return cached
	}
	if order, err := resourceversion.CompareResourceVersion(cached.ResourceVersion, r.written.ResourceVersion); err == nil && order < 0 {
		return r.written
	}
	return cached
}

// writeStatus patches what differs, and tells what ended. It returns 0 when the status is as wanted, and otherwise
// when to try: writes are rare, and those that did not succeed rarer.
func (r *Reconciler) writeStatus(ctx context.Context, image *v1beta1.NodeImage, todo *plan.Plan) (pause time.Duration, err error) {
	after := image.DeepCopy()
	after.Status = *todo.Status
	changes, err := client.MergeFrom(image).Data(after)
	if err != nil {
		return 0, fmt.Errorf("make patch of node image %s: %w", image.Name, err)
	}
	if string(changes) == "{}" {
		return 0, nil
	}
	if left := r.refused.Left(image.ResourceVersion, r.Clock.Now()); left > 0 {
		return left, nil
	}
	if !r.limiter.TryAccept() {
		return heldBackPause, nil
	}
	err = r.Client.Status().Patch(ctx, after, client.MergeFromWithOptions(image, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		outdated := apierrors.IsConflict(err) || apierrors.IsNotFound(err)
		if !outdated {
			ctrl.LoggerFrom(ctx).Error(err, "Status cannot be written")
		}
		r.refused, pause = r.refused.Again(image.ResourceVersion, outdated, r.Clock.Now())
		return pause, nil
	}
	r.written, r.refused = after, refusal.Refusal{}
	for i := range todo.Ended {
		r.tell(image, &todo.Ended[i])
	}
	return 0, nil
}

// tell sends the events of a pull that has ended, once its end is written.
func (r *Reconciler) tell(image *v1beta1.NodeImage, ended *plan.Ending) {
	if ended.Failure == "" {
		r.Metrics.PullSeconds.WithLabelValues(metrics.ResultSucceeded).Observe(ended.Took.Seconds())
		r.Events.Tell(events.Event{
			Regarding: image, Type: corev1.EventTypeNormal, Reason: EventSucceeded, Action: pullAction,
			Note: fmt.Sprintf("Image %s is on node %s", ended.Ref, r.Node),
		})
		return
	}
	r.Metrics.PullSeconds.WithLabelValues(metrics.ResultFailed).Observe(ended.Took.Seconds())
	failed := events.Event{
		Regarding: image, Type: corev1.EventTypeWarning, Reason: EventFailed, Action: pullAction,
		Note: fmt.Sprintf("Failed to pull image %s on node %s: %s", ended.Ref, r.Node, ended.Failure),
	}
	r.Events.Tell(failed)
	failed.Related = image
	for i := range ended.Owners {
		failed.Regarding = &ended.Owners[i]
		r.Events.Tell(failed)
	}
}

// measure counts the tags of each phase.
func (r *Reconciler) measure(status *v1beta1.NodeImageStatus) {
	for phase, count := range map[v1beta1.ImagePullPhase]int32{
		v1beta1.ImageWaiting: status.Waiting, v1beta1.ImagePulling: status.Pulling,
		v1beta1.ImageSucceeded: status.Succeeded, v1beta1.ImageFailed: status.Failed,
	} {
		r.Metrics.Pulls.WithLabelValues(string(phase)).Set(float64(count))
	}
}
