package broadcastjob

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/nodes"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// informers are the caches of the operator. Each shows the objects of its kind that the settings of the cache select,
// transformed, as they were at some moment, under the indexes that the operator adds.
type informers struct {
	cache.Cache // nil: nothing else is asked
	kinds       map[string]*informer
	filled      bool
}

// informer is that of one kind.
type informer struct {
	cache.Informer // nil
	of             *informers
	settings       cache.ByObject
	events         handler.EventHandler
	store          toolscache.Indexer
	raw            map[string]client.Object // what the store was made from
}

func newInformers() *informers {
	is := &informers{kinds: map[string]*informer{}}
	for kind, settings := range map[client.Object]cache.ByObject{
		&v1beta1.BroadcastJob{}: {Transform: fastclient.Trim}, &corev1.Pod{}: Pods(), &corev1.Node{}: nodes.CachedWithAllocatable(),
	} {
		is.kinds[kindOf(kind)] = &informer{of: is, settings: settings, store: toolscache.NewIndexer(nameOf, toolscache.Indexers{
			toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc,
		}), raw: map[string]client.Object{}}
	}
	return is
}

func kindOf(o client.Object) string { return fmt.Sprintf("%T", o) }

func nameOf(o any) (string, error) { return toolscache.MetaNamespaceKeyFunc(o) }

// IndexField implements client.FieldIndexer.
func (is *informers) IndexField(_ context.Context, kind client.Object, field string, values client.IndexerFunc) error {
	return is.kinds[kindOf(kind)].store.AddIndexers(toolscache.Indexers{"field:" + field: func(o any) (keys []string, err error) {
		for _, value := range values(o.(client.Object)) {
			keys = append(keys, "__all_namespaces/"+value, o.(client.Object).GetNamespace()+"/"+value)
		}
		return keys, nil
	}})
}

// GetInformer implements cache.Informers.
func (is *informers) GetInformer(_ context.Context, kind client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	return is.kinds[kindOf(kind)], nil
}

func (i *informer) HasSynced() bool                { return i.of.filled }
func (i *informer) GetIndexer() toolscache.Indexer { return i.store }

// show has the cache show the objects, and tells the operator of those that have changed.
func (i *informer) show(w *world, now map[string]client.Object) {
	for _, key := range slices.Sorted(maps.Keys(i.raw)) {
		if now[key] == nil || now[key].GetUID() != i.raw[key].GetUID() {
			i.replace(w, key, nil)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(now)) {
		if now[key] != i.raw[key] {
			i.replace(w, key, i.selected(w, now[key]))
		}
	}
	i.raw = maps.Clone(now)
}

// selected returns what the cache holds of an object, nil for nothing.
func (i *informer) selected(w *world, o client.Object) client.Object {
	if i.settings.Label != nil && !i.settings.Label.Matches(labels.Set(o.GetLabels())) {
		return nil
	}
	shown, err := i.settings.Transform(o.DeepCopyObject())
	require.NoError(w, err)
	return shown.(client.Object)
}

func (i *informer) replace(w *world, key string, now client.Object) {
	item, there, err := i.store.GetByKey(key)
	require.NoError(w, err)
	old, _ := item.(client.Object)
	ctx, queue := ctrl.LoggerInto(w.Context(), logr.Discard()), &queue{world: w}
	switch {
	case now == nil && there:
		require.NoError(w, i.store.Delete(old))
		i.events.Delete(ctx, event.DeleteEvent{Object: old}, queue)
	case now == nil:
	case there:
		require.NoError(w, i.store.Update(now))
		i.events.Update(ctx, event.UpdateEvent{ObjectOld: old, ObjectNew: now}, queue)
	default:
		require.NoError(w, i.store.Add(now))
		i.events.Create(ctx, event.CreateEvent{Object: now, IsInInitialList: !i.of.filled}, queue)
	}
}

// queue is the queue of the controller.
type queue struct {
	nodes.Queue // nil
	world       *world
}

func (q *queue) Add(request ctrl.Request) { q.AddAfter(request, 0) }

func (q *queue) AddAfter(request ctrl.Request, after time.Duration) {
	if request.NamespacedName == jobName {
		q.world.wakeIn(after.Truncate(time.Second)) // a moment counts as none
	}
}

// moment is what caches show.
type moment struct {
	job   *v1beta1.BroadcastJob
	nodes map[string]*corev1.Node
	pods  map[string]*corev1.Pod
}

// refresh has the caches show the present. Each may lag, but shows what the operator has written itself: a pass waits for
// that. The caches of a new operator begin with what those of the last one showed, or with something later: a cache has
// filled only once it holds a list.
func (w *world) refresh() {
	if !w.odds(4) {
		w.shown.nodes = maps.Clone(w.nodes)
	}
	if w.wrote || !w.odds(4) {
		w.shown.pods = maps.Clone(w.pods)
	}
	if w.wrote || !w.odds(4) {
		w.shown.job = w.job
	}
	w.wrote = false
	jobs := map[string]*v1beta1.BroadcastJob{}
	if w.shown.job != nil {
		jobs[jobName.String()] = w.shown.job
	}
	show(w, &corev1.Node{}, w.shown.nodes)
	show(w, &corev1.Pod{}, w.shown.pods)
	show(w, &v1beta1.BroadcastJob{}, jobs)
}

func show[P client.Object](w *world, kind P, now map[string]P) {
	objects := make(map[string]client.Object, len(now))
	for key, o := range now {
		objects[key] = o
	}
	w.caches.kinds[kindOf(kind)].show(w, objects)
}

// A cache says that it has filled once it holds what the server has listed. A pass over one that holds nothing yet would
// take every node for deleted.
func TestCachesThatHaveFilledHoldWhatTheWorldSaysTheyShow(t *testing.T) {
	w := newWorld(t, 1)
	for range 40 {
		w.addNode()
		w.newOperator()
		for !w.caches.filled {
			w.at = w.at.Add(time.Second)
			w.operate()
		}
		require.Equal(t, namesOf(w.shown.nodes), namesOf(w.caches.kinds[kindOf(&corev1.Node{})].raw))
		require.Equal(t, namesOf(w.shown.pods), namesOf(w.caches.kinds[kindOf(&corev1.Pod{})].raw))
		require.Equal(t, w.shown.job != nil, w.caches.kinds[kindOf(&v1beta1.BroadcastJob{})].raw[jobName.String()] != nil)
	}
}

func namesOf[T any](objects map[string]T) []string { return slices.Sorted(maps.Keys(objects)) }
