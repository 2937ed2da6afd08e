package workloadspread

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/pods/podstate"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/subsets"
	"github.com/flotilla-project/flotilla/spread/internal/workloads"
)

const (
	// targetIndex finds spreads by their target.
	targetIndex = "spec.targetRef"
	// spreadIndex finds pods by the spread that they name.
	spreadIndex = "matchedWorkloadSpread"
	// pause is how long events are gathered that come in numbers: events of pods, and of places that admission has taken.
	pause = 50 * time.Millisecond
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func targetKey(kind schema.GroupKind, name string) string { return kind.String() + "/" + name }

// AddIndexes adds the indexes of spreads and pods.
func AddIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &v1beta1.WorkloadSpread{}, targetIndex, func(o client.Object) []string {
		spread, ok := o.(*v1beta1.WorkloadSpread)
		if !ok || spread.Spec.TargetReference == nil {
			return nil
		}
		return []string{targetKey(workloads.KindOf(spread.Spec.TargetReference), spread.Spec.TargetReference.Name)}
	})
	if err != nil {
		return fmt.Errorf("index workload spreads by target: %w", err)
	}
	err = indexer.IndexField(ctx, &corev1.Pod{}, spreadIndex, func(o client.Object) []string {
		if pod, ok := o.(*corev1.Pod); ok && subsets.NameOf(pod) != "" {
			return []string{subsets.NameOf(pod)}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("index pods by their workload spread: %w", err)
	}
	if err := fastclient.IndexOwners(ctx, indexer, &corev1.Pod{}); err != nil {
		return err
	}
	return fastclient.IndexUncontrolled(ctx, indexer, &corev1.Pod{})
}

// spreads wakes a spread: at once for changes of its user, and a little later for its status. One that comes or goes wakes
// the others of its namespace, too: pods of one may become pods of another.
func (r *reconciler) spreads() handler.EventHandler {
	wake := func(q queue, o client.Object, after time.Duration) {
		q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)}, after)
	}
	wakeAll := func(ctx context.Context, q queue, o client.Object) {
		wake(q, o, 0)
		all, err := fastclient.All[v1beta1.WorkloadSpread](ctx, r.Reader, o.GetNamespace())
		if err != nil {
			log.FromContext(ctx).Error(err, "Failed to list the WorkloadSpreads of a namespace", "namespace", o.GetNamespace())
		}
		for _, s := range all {
			wake(q, s, pause)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if e.IsInInitialList { // all are woken
				wake(q, e.Object, 0)
				return
			}
			wakeAll(ctx, q, e.Object)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { wakeAll(ctx, q, e.Object) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() {
				wake(q, e.ObjectNew, 0)
				return
			}
			wake(q, e.ObjectNew, pause)
		},
	}
}

// allowances wakes the spreads of kinds that the ConfigMap allows: its entry for one of them may have changed.
func (r *reconciler) allowances() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) (requests []reconcile.Request) {
		r.snapshots.Workloads.Config().Forget()
		all, err := fastclient.All[v1beta1.WorkloadSpread](ctx, r.Reader, "")
		if err != nil {
			log.FromContext(ctx).Error(err, "Failed to list the WorkloadSpreads of custom workloads")
		}
		for _, s := range all {
			if !slices.Contains(workloads.BuiltIn(), workloads.KindOf(s.Spec.TargetReference)) {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(s)})
			}
		}
		return requests
	})
}

// podEvents wakes the spread of a pod: at once when the pod takes no place any more.
func (r *reconciler) podEvents() handler.EventHandler {
	wake := func(q queue, o client.Object, after time.Duration) {
		pod, ok := o.(*corev1.Pod)
		if !ok {
			return
		}
		for _, key := range r.snapshots.SpreadsOf(pod) {
			q.AddAfter(reconcile.Request{NamespacedName: key}, after)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { wake(q, e.Object, pause) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { wake(q, e.Object, 0) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			before, okBefore := e.ObjectOld.(*corev1.Pod)
			after, okAfter := e.ObjectNew.(*corev1.Pod)
			switch {
			case !okBefore || !okAfter:
				wake(q, e.ObjectNew, pause)
			case podstate.IsActive(before) != podstate.IsActive(after):
				wake(q, after, 0)
			case Changed(before, after):
				wake(q, before, pause)
				wake(q, after, pause)
			}
		},
	}
}

// Changed reports whether anything differs that the plan reads.
func Changed(before, after *corev1.Pod) bool {
	return podstate.IsActive(before) != podstate.IsActive(after) ||
		!maps.Equal(before.Labels, after.Labels) || !maps.Equal(before.Annotations, after.Annotations) ||
		before.Spec.NodeName != after.Spec.NodeName || !equality.Semantic.DeepEqual(before.Status, after.Status) ||
		!equality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences)
}

// SpreadsOf returns the spread that a pod's annotation names, and those that were read with the pod's owner.
func (r *Snapshots) SpreadsOf(pod *corev1.Pod) (keys []types.NamespacedName) {
	if name := subsets.NameOf(pod); name != "" {
		keys = append(keys, types.NamespacedName{Namespace: pod.Namespace, Name: name})
	}
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil {
		return append(keys, r.owners.choosing(pod)...)
	}
	return append(keys, r.owners.of(ref.UID)...)
}

// owners remembers the owners of the pods that each spread counts.
type owners struct {
	mu       sync.Mutex
	byUID    map[types.UID][]types.NamespacedName
	bySpread map[types.NamespacedName][]types.UID
	chosen   map[types.NamespacedName]labels.Selector // of pods without owners
}

func newOwners() *owners {
	return &owners{
		byUID:    map[types.UID][]types.NamespacedName{},
		bySpread: map[types.NamespacedName][]types.UID{},
		chosen:   map[types.NamespacedName]labels.Selector{},
	}
}

func (o *owners) of(uid types.UID) []types.NamespacedName {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.byUID[uid]
}

// choosing returns the spreads that count a pod for its labels.
func (o *owners) choosing(pod *corev1.Pod) (keys []types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for key, selector := range o.chosen {
		if key.Namespace == pod.Namespace && selector.Matches(labels.Set(pod.Labels)) {
			keys = append(keys, key)
		}
	}
	return keys
}

// choose remembers, until set is called, which pods without owners a spread counts.
func (o *owners) choose(spread types.NamespacedName, selector labels.Selector) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.chosen[spread] = selector
}

func (o *owners) set(spread types.NamespacedName, uids []types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, uid := range o.bySpread[spread] {
		others := slices.DeleteFunc(slices.Clone(o.byUID[uid]), func(s types.NamespacedName) bool { return s == spread })
		if o.byUID[uid] = others; len(others) == 0 {
			delete(o.byUID, uid)
		}
	}
	delete(o.bySpread, spread)
	delete(o.chosen, spread)
	if len(uids) == 0 {
		return
	}
	o.bySpread[spread] = uids
	for _, uid := range uids {
		o.byUID[uid] = append(slices.Clip(o.byUID[uid]), spread)
	}
}

// Forget implements pass.Memory.
func (o *owners) Forget(spread types.NamespacedName) { o.set(spread, nil) }

// targets watches kinds of workloads from the first spread that has one of them as its target.
type targets struct {
	controller controller.Controller
	cache      cache.Cache
	mapper     meta.RESTMapper
	workloads  *workloads.Reader
	reader     *fastclient.Reader

	mu    sync.Mutex
	begun map[schema.GroupKind]bool
}

// watch watches a kind of workloads, and the kinds between them and their pods.
func (t *targets) watch(ctx context.Context, kind schema.GroupKind) error {
	between, err := t.workloads.Between(ctx, kind)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range append([]schema.GroupKind{kind}, between...) {
		if t.begun[k] {
			continue
		}
		mapping, err := t.mapper.RESTMapping(k)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("find kind %s: %w", k, err)
		}
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(mapping.GroupVersionKind)
		if err := t.controller.Watch(source.Kind[client.Object](t.cache, object, handler.EnqueueRequestsFromMapFunc(t.spreadsOf), targetChanges())); err != nil {
			return fmt.Errorf("watch %s: %w", k, err)
		}
		t.begun[k] = true
	}
	return nil
}

// spreadsOf returns the spreads that target the object or its controller.
func (t *targets) spreadsOf(ctx context.Context, o client.Object) (requests []reconcile.Request) {
	keys := []string{targetKey(o.GetObjectKind().GroupVersionKind().GroupKind(), o.GetName())}
	if ref := metav1.GetControllerOfNoCopy(o); ref != nil {
		keys = append(keys, targetKey(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind(), ref.Name))
	}
	for _, key := range keys {
		found, err := fastclient.ByIndex[v1beta1.WorkloadSpread](ctx, t.reader, o.GetNamespace(), targetIndex, key)
		if err != nil {
			log.FromContext(ctx).Error(err, "Failed to list the WorkloadSpreads of a workload", "workload", key)
		}
		for _, s := range found {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(s)})
		}
	}
	return requests
}

// targetChanges selects events of workloads after which other pods are wanted, or another revision is the latest.
func targetChanges() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld, e.ObjectNew
		return before.GetGeneration() != after.GetGeneration() || before.GetUID() != after.GetUID() ||
			(before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil) ||
			!maps.Equal(before.GetAnnotations(), after.GetAnnotations()) || !maps.Equal(before.GetLabels(), after.GetLabels())
	}}
}
