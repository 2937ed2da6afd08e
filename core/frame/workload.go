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

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/core/workloads/model"
)

// Workload is a kind of workload with its plan. T is the struct of the kind, P a pointer to it, and S the input of its
// plan: a model.Snapshot[P] with the additions of the kind.
type Workload[T any, P fastclient.Object[T], S any] struct {
	// Name is the name of the controller in logs, metrics and its user agent, such as cloneset.
	Name string
	// Kind is the kind in the version of T.
	Kind schema.GroupVersionKind

	// PodLabel is the label of pods that are cached. The kind writes it on each of its pods.
	PodLabel string
	// Cached has the cache settings of pods and of other namespaced kinds, ClusterCached has the settings of
	// cluster-scoped kinds. The kind itself and revisions need no entry.
	Cached, ClusterCached map[client.Object]cache.ByObject
	// Fenced are the entries of ClusterCached on which plans rest: a new leader waits for their caches, too.
	Fenced map[client.Object]cache.ByObject

	// Describe returns the fields of a set that the frame reads.
	Describe func(set P) Set
	// IsMember reports whether the set can adopt a pod of this name that has no controller. Nil means every name.
	IsMember func(set P, pod string) bool

	// DefaultPullPolicy defines the imagePullPolicy of a container that names none.
	DefaultPullPolicy podspec.DefaultPullPolicy
	// SameTemplate reports whether two templates are equal that still differ after defaulting. Optional.
	SameTemplate func(stored, present *corev1.PodTemplateSpec) bool
	// HashLabel is the label of a revision that has its hash. Empty means contract.RevisionHashLabel.
	HashLabel string
	// HashClaims writes a hash of the claim templates into revisions.
	HashClaims bool

	// Indexes adds indexes of the kind's own to the cache. Optional.
	Indexes func(ctx context.Context, indexer client.FieldIndexer) error
	// Memories are the kind's own memories of sets. The one of a set is dropped when the set is gone. Optional.
	Memories []pass.Memory
	// Watch adds watches that wake a set, in addition to events of itself, its pods and its revisions. Optional.
	Watch func(c *Controller, owners Owners, b *builder.Builder)
	// Adopters returns a function that finds the sets that could adopt a pod without a controller. Nil means the sets
	// with a selector that matches.
	Adopters func(c *Controller) func(context.Context, *corev1.Pod) []types.NamespacedName

	// PreDownload enables pulling images ahead of updates.
	PreDownload bool
	// Snapshot reads the additional input of the kind's plan. The error reports the read that failed.
	Snapshot func(ctx context.Context, c *Controller, seen model.Snapshot[P]) (S, error)
	// Compute makes the plan.
	Compute func(S) model.Plan
	// Status sets the next status on the set, given the outcome of the plan.
	Status func(set P, seen S, todo model.Plan, done action.Failures)
}

// Set has the fields of a workload that the frame reads, whatever its kind.
type Set struct {
	// Fields of the spec. Replicas is how many pods the set wants; nil where that is unknown.
	Selector        *metav1.LabelSelector
	Template        *corev1.PodTemplateSpec
	ClaimTemplates  []corev1.PersistentVolumeClaim
	Replicas        *int32
	MinReadySeconds int32
	// Fields of the stored status. Pods is the number of pods in it, Available of those that are available.
	Pods               int32
	Available          int32
	Conditions         []workload.Condition
	ObservedGeneration int64
	CurrentRevision    string
	CollisionCount     *int32
	// InRollout is true if pods of older revisions are left, for kinds with a status that names no current revision.
	InRollout bool
}

// defaultWorkers is how many sets are reconciled at a time by default.
const defaultWorkers = 3

// CacheOptions returns the cache options of the operator. An empty namespace means all.
func (w *Workload[T, P, S]) CacheOptions(namespace string) cache.Options {
	kinds := map[client.Object]cache.ByObject{&appsv1.ControllerRevision{}: fastclient.Within(namespace, fastclient.Revisions(w.Kind.Group))}
	for kind, cached := range w.Cached {
		kinds[kind] = fastclient.Within(namespace, cached)
	}
	maps.Copy(kinds, w.ClusterCached)
	return fastclient.CacheOptions(namespace, kinds)
}

// SetUp adds the controller to the manager. Every event of a set and of its revisions wakes it, and events of its pods
// if they can change a plan. Create the manager's cache with CacheOptions, and call SetUp before the cache starts.
func (w *Workload[T, P, S]) SetUp(ctx context.Context, mgr ctrl.Manager, settings pass.Settings) error {
	if w.Indexes != nil {
		if err := w.Indexes(ctx, mgr.GetFieldIndexer()); err != nil {
			return err
		}
	}
	c, err := NewController(ctx, mgr, Options{
		Settings:    settings,
		Controller:  w.Name,
		EventSource: w.Name + "-controller",
		Kind:        P(new(T)),
		Cache:       w.CacheOptions(settings.Namespace),
		Fenced:      w.Fenced,
		PodLabel:    w.PodLabel,
	})
	if err != nil {
		return err
	}
	c.AddMemories(w.Memories...)
	owners := Owners{Kind: w.Kind.GroupKind()}
	if w.Adopters != nil {
		owners.Candidates = w.Adopters(c)
	} else {
		owners.Candidates = MatchingSelector[T, P](c, func(set P) *metav1.LabelSelector { return w.Describe(set).Selector })
	}
	b := ctrl.NewControllerManagedBy(mgr).
		Named(w.Name).
		For(P(new(T))).
		Watches(&corev1.Pod{}, owners.Pods()).
		Watches(&appsv1.ControllerRevision{}, owners.Objects()).
		WithOptions(settings.Options(defaultWorkers))
	if w.Watch != nil {
		w.Watch(c, owners, b)
	}
	return b.Complete(&reconciler[T, P, S]{Workload: w, controller: c})
}
