package launch

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/events"
	"github.com/flotilla-project/flotilla/core/execute"
	"github.com/flotilla-project/flotilla/core/fastclient"
	"github.com/flotilla-project/flotilla/core/freshness"
	"github.com/flotilla-project/flotilla/core/podstate"

	"github.com/flotilla-project/flotilla/daemon/internal/launch/plan"
	"github.com/flotilla-project/flotilla/daemon/internal/podcache"
)

// ControllerName names the controller in logs, metrics and its user agent.
const ControllerName = "launchpriority"

// workers is how many pods are looked at at a time.
const workers = 4

// Options change how the controller works.
type Options struct {
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

// ConfigMaps is the cache of ConfigMaps with barriers, in one namespace or, when it is empty, in all.
func ConfigMaps(namespace string) cache.ByObject {
	return fastclient.Within(namespace, cache.ByObject{
		Label: labels.SelectorFromSet(labels.Set{plan.BarrierLabel: "true"}), Transform: fastclient.Trim,
	})
}

// SetUp adds the controller to the manager, whose cache must hold pods as podcache.ByObject and ConfigMaps as
// ConfigMaps say.
func SetUp(ctx context.Context, mgr ctrl.Manager, o Options) error {
	writer, err := fastclient.NewClient(mgr, o.UserAgent)
	if err != nil {
		return fmt.Errorf("make the controller's client: %w", err)
	}
	gate, err := freshness.New(ctx, freshness.Options{
		Cache: mgr.GetCache(), Scheme: mgr.GetScheme(), Live: mgr.GetAPIReader(), Clock: clock.RealClock{}, LeaderVersion: o.LeaderVersion,
		Kinds: map[client.Object]cache.ByObject{
			&corev1.Pod{}: podcache.ByObject(o.Namespace), &corev1.ConfigMap{}: ConfigMaps(o.Namespace),
		},
	})
	if err != nil {
		return fmt.Errorf("make the freshness gate: %w", err)
	}
	if err := mgr.Add(gate); err != nil {
		return fmt.Errorf("add the freshness gate: %w", err)
	}
	executor, err := execute.New(execute.Options{
		Client: writer, Live: mgr.GetAPIReader(), Recorder: gate, Metrics: metrics.Registry, Controller: ControllerName,
	})
	if err != nil {
		return fmt.Errorf("make the executor: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(ControllerName).
		For(&corev1.Pod{}, builder.WithPredicates(concerns())).
		Owns(&corev1.ConfigMap{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(&reconciler{
			live:      mgr.GetAPIReader(),
			reader:    fastclient.NewReader(mgr.GetCache(), mgr.GetScheme(), o.Reader),
			freshness: gate,
			executor:  executor,
			events:    events.NewRecorder(mgr.GetEventRecorder("container-launch-priority-controller")),
			clock:     clock.RealClock{},
		})
}

// concerns lets pods through for which a plan could want something, and the end of those that it has dealt
// with.
func concerns() predicate.Predicate {
	p := predicate.NewPredicateFuncs(func(o client.Object) bool {
		pod, ok := o.(*corev1.Pod)
		return ok && (plan.NeedsConfigMap(pod) || plan.NeedsReadiness(pod))
	})
	p.DeleteFunc = func(e event.DeleteEvent) bool {
		pod, ok := e.Object.(*corev1.Pod)
		return ok && (plan.HasBarrier(pod) || podstate.HasGate(pod, contract.KruisePodReady))
	}
	return p
}
