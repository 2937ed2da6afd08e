package frame

import (
	"context"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/flotilla-project/flotilla/core/controllers/base"
	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/frame/engine"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/core/workloads/model"
)

// Workload is a kind of workload with its plan. T is the struct of the kind, P a pointer to it, and S is what its plan
// is given: a model.Snapshot[P] with what the kind adds.
type Workload[T any, P fastclient.Object[T], S any] struct {
	// Name names the controller in logs, metrics and its user agent, such as cloneset.
	Name string
	// Kind is the kind in the version of T.
	Kind schema.GroupVersionKind

	// PodLabel is the label by whose presence pods are cached. The kind writes it on each of its own.
	PodLabel string
	// Cached says what is cached of pods and of other kinds that have a namespace, ClusterCached of those that have none.
	// The kind itself and revisions need no entry.
	Cached, ClusterCached map[client.Object]cache.ByObject

	// Describe tells what the frame reads of a set.
	Describe func(set P) Set
	// IsMember reports whether a pod of the name that has no controller can become one of the set's. Nil takes all.
	IsMember func(set P, pod string) bool

	// DefaultPullPolicy says how a container without imagePullPolicy is read.
	DefaultPullPolicy podspec.DefaultPullPolicy
	// SameTemplate takes more templates for equal than the defaults of fields make so. Optional.
	SameTemplate func(stored, present *corev1.PodTemplateSpec) bool
	// HashClaims records on revisions a hash of the claim templates.
	HashClaims bool

	// Watch adds what else wakes a set besides events of itself, of its pods and of its revisions. Optional.
	Watch func(e *engine.Engine, owners engine.Owners, b *builder.Builder)
	// Adopters finds the sets that could adopt a pod without a controller. Nil finds those whose selector matches.
	Adopters func(e *engine.Engine) func(context.Context, *corev1.Pod) []types.NamespacedName

	// PreDownload says that images are pulled ahead of updates.
	PreDownload bool
	// Snapshot reads what the plan needs to know besides. The error says what could not be read.
	Snapshot func(ctx context.Context, e *engine.Engine, seen model.Snapshot[P]) (S, error)
	// Compute is the plan.
	Compute func(S) model.Plan
	// Status writes the next status into the set, when that has become of the plan.
	Status func(set P, seen S, todo model.Plan, done action.Failures)
}

// Set is what the frame reads of a set, whatever its kind.
type Set struct {
	// Of the spec. Replicas are the pods that the set wants; nil where that is not known.
	Selector        *metav1.LabelSelector
	Template        *corev1.PodTemplateSpec
	ClaimTemplates  []corev1.PersistentVolumeClaim
	Replicas        *int32
	MinReadySeconds int32
	// Of the status, as it is stored. Pods is how many the status tells of.
	Pods               int32
	ObservedGeneration int64
	CurrentRevision    string
	CollisionCount     *int32
}

// defaultWorkers is how many sets are reconciled at a time unless the process says otherwise.
const defaultWorkers = 3

// CacheOptions say what the operator keeps in memory. An empty namespace means all.
func (w *Workload[T, P, S]) CacheOptions(namespace string) cache.Options {
	kinds := map[client.Object]cache.ByObject{&appsv1.ControllerRevision{}: fastclient.Within(namespace, fastclient.Revisions(w.Kind.Group))}
	for kind, cached := range w.Cached {
		kinds[kind] = fastclient.Within(namespace, cached)
	}
	maps.Copy(kinds, w.ClusterCached)
	return fastclient.CacheOptions(namespace, kinds)
}

// SetUp adds the controller to the manager, whose cache must be made with CacheOptions: every event of a set and of its
// revisions wakes it, of its pods those that a plan could judge differently. It must be called before the cache starts.
func (w *Workload[T, P, S]) SetUp(ctx context.Context, mgr ctrl.Manager, settings base.Settings) error {
	if settings.Workers == 0 {
		settings.Workers = defaultWorkers
	}
	e, err := engine.New(ctx, mgr, engine.Options{
		Settings: settings, Controller: w.Name, EventSource: w.Name + "-controller",
		Kind: P(new(T)), Cache: w.CacheOptions(settings.Namespace), PodLabel: w.PodLabel,
	})
	if err != nil {
		return err
	}
	owners := engine.Owners{Kind: w.Kind.GroupKind()}
	if w.Adopters != nil {
		owners.Candidates = w.Adopters(e)
	} else {
		owners.Candidates = engine.Selecting[T, P](e, func(set P) *metav1.LabelSelector { return w.Describe(set).Selector })
	}
	b := ctrl.NewControllerManagedBy(mgr).
		Named(w.Name).
		For(P(new(T))).
		Watches(&corev1.Pod{}, owners.Pods()).
		Watches(&appsv1.ControllerRevision{}, owners.Objects()).
		WithOptions(controller.Options{MaxConcurrentReconciles: settings.Workers})
	if w.Watch != nil {
		w.Watch(e, owners, b)
	}
	return b.Complete(&reconciler[T, P, S]{Workload: w, engine: e})
}
