package workloadspread

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/flotilla-project/flotilla/core/controllers/optional"
	"github.com/flotilla-project/flotilla/core/controllers/pass"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/subsets"
	"github.com/flotilla-project/flotilla/spread/internal/workloads"
)

// ControllerName is the name of the controller in logs, metrics and its user agent.
const ControllerName = "workloadspread"

// DefaultPause is how long a subset gets no new pods after pods were unschedulable there, by default.
const DefaultPause = 5 * time.Minute

const (
	// workers is how many spreads are reconciled at a time by default.
	workers = 3
	// loading is how often it is looked whether the cache has the pods of a namespace that has just got its first spread.
	loading = 100 * time.Millisecond
)

// Options change how the controller works.
type Options struct {
	pass.Settings
	// Workloads reads the targets.
	Workloads *workloads.Reader
	// Versioned are the kinds of workloads with separate places for each revision.
	Versioned subsets.Versioned
	// Pause is how long a subset gets no new pods after pods were unschedulable there.
	Pause time.Duration
	// IsComplete reports whether the cache has the pods of a namespace.
	IsComplete func(namespace string) bool
	// Through writes statuses together with the places that wait to be written, as pass.Pass has it.
	Through func(context.Context, client.Object, func(client.Object) client.Object) (client.Object, error)
}

// SetUp adds the controller to the manager. Its cache must hold pods and ConfigMaps according to Pods and Allowances.
func SetUp(ctx context.Context, mgr ctrl.Manager, o Options) error {
	if err := AddIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	b, err := pass.New(ctx, mgr, pass.Options{
		Settings:    o.Settings,
		Controller:  ControllerName,
		EventSource: "workloadspread-controller",
		Kinds:       map[client.Object]cache.ByObject{&v1beta1.WorkloadSpread{}: {}, &corev1.Pod{}: Pods(o.Namespace)},
	})
	if err != nil {
		return err
	}
	// Nodes are looked up and wake no spread: their cache begins here.
	if _, err := mgr.GetCache().GetInformer(ctx, &corev1.Node{}, cache.BlockUntilSynced(false)); err != nil {
		return fmt.Errorf("cache nodes: %w", err)
	}
	r := &reconciler{
		Controller: b,
		isComplete: o.IsComplete,
		meter:      newMeter(),
		through:    o.Through,
		snapshots: NewSnapshots(SnapshotOptions{
			Cached:    b.Reader,
			Live:      b.Live,
			Workloads: o.Workloads,
			Versioned: o.Versioned,
			Pause:     o.Pause,
			Clock:     b.Clock,
		}),
	}
	b.AddMemories(r.snapshots.owners, r.snapshots.sights, r.meter)
	made, err := ctrl.NewControllerManagedBy(mgr).
		Named(ControllerName).
		Watches(&v1beta1.WorkloadSpread{}, r.spreads()).
		Watches(&corev1.Pod{}, r.podEvents()).
		WithOptions(o.Options(workers)).
		Build(r)
	if err != nil {
		return fmt.Errorf("make the controller: %w", err)
	}
	r.targets = &targets{
		controller: made,
		cache:      mgr.GetCache(),
		mapper:     mgr.GetRESTMapper(),
		workloads:  o.Workloads,
		reader:     b.Reader,
		begun:      map[schema.GroupKind]bool{},
	}
	r.snapshots.watch = r.targets.watch
	return optional.Begin(ctx, mgr, optional.Beginning{
		Ready: func(ctx context.Context) (bool, error) { return r.mayFollowAllowances(ctx, mgr.GetClient()), nil },
		With: func(context.Context) error {
			return made.Watch(source.Kind[client.Object](mgr.GetCache(), &corev1.ConfigMap{}, r.allowances()))
		},
	})
}

// mayFollowAllowances reports whether the operator may watch the ConfigMap of further kinds, which it may unless the server
// denies it. Without that permission its changes reach the spreads of these kinds later, and no others.
func (r *reconciler) mayFollowAllowances(ctx context.Context, c client.Writer) bool {
	rights := optional.Rights{
		Namespace: r.snapshots.Workloads.Config().Namespace,
		Resource:  "configmaps",
		Name:      workloads.ConfigMapName,
		Verbs:     []string{"list", "watch"},
	}
	lacking, err := rights.Lacking(ctx, c)
	if err != nil {
		log.FromContext(ctx).Error(err, "Failed to check the permission to watch the ConfigMap of additional kinds")
	}
	return len(lacking) == 0
}
