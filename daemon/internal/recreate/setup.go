package recreate

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/events"
	"github.com/flotilla-project/flotilla/core/execute"
	"github.com/flotilla-project/flotilla/core/fastclient"
	"github.com/flotilla-project/flotilla/core/freshness"
	"github.com/flotilla-project/flotilla/core/podstate"
	"github.com/flotilla-project/flotilla/core/status"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/podcache"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/plan"
)

// ControllerName names the controller in logs, metrics and its user agent.
const ControllerName = "containerrecreaterequest"

// DefaultWorkers is how many requests are reconciled at a time unless Options say otherwise.
const DefaultWorkers = 3

// podIndex holds the UID of the pod of a request that is active.
const podIndex = "podUID"

// Options change how the controller works.
type Options struct {
	// Workers is how many requests are reconciled at a time; 0 means DefaultWorkers.
	Workers int
	// Reader says how cached objects are handed out.
	Reader fastclient.Options
	// LeaderVersion returns the resourceVersion of the write that made this process leader; nil without
	// leader election.
	LeaderVersion func(context.Context) (string, error)
	// Namespace restricts the controller to one namespace; empty means all.
	Namespace string
	// UserAgent is the name under which the controller writes.
	UserAgent string
}

// SetUp adds the controller to the manager, whose cache must hold pods as podcache.ByObject says.
func SetUp(ctx context.Context, mgr ctrl.Manager, o Options) error {
	if o.Workers == 0 {
		o.Workers = DefaultWorkers
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1beta1.ContainerRecreateRequest{}, podIndex, podOf); err != nil {
		return fmt.Errorf("index requests by pod: %w", err)
	}
	r, err := newReconciler(ctx, mgr, o)
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(ControllerName).
		For(&v1beta1.ContainerRecreateRequest{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.requestsFor), builder.WithPredicates(changes())).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Workers}).
		Complete(r)
}

func newReconciler(ctx context.Context, mgr ctrl.Manager, o Options) (*reconciler, error) {
	writer, err := fastclient.NewClient(mgr, o.UserAgent)
	if err != nil {
		return nil, fmt.Errorf("make the controller's client: %w", err)
	}
	gate, err := freshness.New(ctx, freshness.Options{
		Cache: mgr.GetCache(), Scheme: mgr.GetScheme(), Live: mgr.GetAPIReader(), Clock: clock.RealClock{}, LeaderVersion: o.LeaderVersion,
		Kinds: map[client.Object]cache.ByObject{
			&v1beta1.ContainerRecreateRequest{}: fastclient.Within(o.Namespace, cache.ByObject{}),
			&corev1.Pod{}:                       podcache.ByObject(o.Namespace),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("make the freshness gate: %w", err)
	}
	if err := mgr.Add(gate); err != nil {
		return nil, fmt.Errorf("add the freshness gate: %w", err)
	}
	executor, err := execute.New(execute.Options{
		Client: writer, Live: mgr.GetAPIReader(), Recorder: gate, Metrics: metrics.Registry, Controller: ControllerName,
	})
	if err != nil {
		return nil, fmt.Errorf("make the executor: %w", err)
	}
	return &reconciler{
		live:      mgr.GetAPIReader(),
		reader:    fastclient.NewReader(mgr.GetCache(), mgr.GetScheme(), o.Reader),
		freshness: gate,
		executor:  executor,
		status:    status.Writer{Client: writer, Recorder: gate},
		events:    events.NewRecorder(mgr.GetEventRecorder("containerrecreaterequest-controller")),
		clock:     clock.RealClock{},
	}, nil
}

// podOf is the value of podIndex.
func podOf(o client.Object) []string {
	if r, ok := o.(*v1beta1.ContainerRecreateRequest); ok && plan.Active(r) {
		return []string{r.Labels[v1beta1.PodUIDLabel]}
	}
	return nil
}

// requestsFor are the active requests for a pod.
func (r *reconciler) requestsFor(ctx context.Context, pod client.Object) []reconcile.Request {
	all, err := fastclient.ByIndex[v1beta1.ContainerRecreateRequest](ctx, r.reader, pod.GetNamespace(), podIndex, string(pod.GetUID()))
	if err != nil {
		return nil
	}
	keys := make([]reconcile.Request, 0, len(all))
	for _, o := range all {
		keys = append(keys, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
	}
	return keys
}

// changes lets events of pods through that a plan could judge differently.
func changes() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		old, okOld := e.ObjectOld.(*corev1.Pod)
		now, okNow := e.ObjectNew.(*corev1.Pod)
		return !okOld || !okNow || changed(old, now)
	}}
}

func changed(old, now *corev1.Pod) bool {
	hold := func(pod *corev1.Pod) *corev1.PodCondition { return podstate.Condition(pod, contract.KruisePodReady) }
	return old.UID != now.UID || (old.DeletionTimestamp == nil) != (now.DeletionTimestamp == nil) ||
		old.Status.Phase != now.Status.Phase || !equality.Semantic.DeepEqual(hold(old), hold(now)) ||
		!slices.EqualFunc(old.Status.ContainerStatuses, now.Status.ContainerStatuses, same) ||
		!slices.EqualFunc(old.Status.InitContainerStatuses, now.Status.InitContainerStatuses, same)
}

// same says that nothing of a container's status has changed that the snapshot of a request shows.
func same(a, b corev1.ContainerStatus) bool {
	return a.Name == b.Name && a.ContainerID == b.ContainerID && a.RestartCount == b.RestartCount && a.Ready == b.Ready &&
		(a.State.Running == nil) == (b.State.Running == nil) && (a.State.Terminated == nil) == (b.State.Terminated == nil)
}
