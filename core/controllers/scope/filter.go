package scope

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// Observer follows the pods that a filter keeps out of the cache. Its functions are called between two events: they must not
// wait.
type Observer struct {
	// Changed is called with each event of such a pod, except for those of a list.
	Changed func(pod *corev1.Pod)
	// Listed is called when all pods have been listed: events before may have been lost.
	Listed func()
}

// Filter limits a cache of pods to those that are chosen by their own fields. Of all others, the cache has the versions alone. It
// is safe for concurrent use.
type Filter struct {
	chosen func(*corev1.Pod) bool

	mu       sync.Mutex
	kept     map[string]bool // keys of pods that the cache has or is about to have
	observer Observer
}

// NewFilter returns a filter for the pods for which chosen returns true. A pod may be chosen by one event and not by the next.
func NewFilter(chosen func(*corev1.Pod) bool) *Filter {
	return &Filter{
		chosen:   chosen,
		kept:     map[string]bool{},
		observer: Observer{Changed: func(*corev1.Pod) {}, Listed: func() {}},
	}
}

// Observe sets the observer of the filter. It may be called at any time.
func (f *Filter) Observe(o Observer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.observer = o
}

func (f *Filter) observed() Observer {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.observer
}

// Limit returns the function that makes informers. Informers of pods have only the chosen pods. A filter serves one of them.
func (f *Filter) Limit(inner NewInformer) NewInformer {
	return func(from toolscache.ListerWatcher, example runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		if _, ok := example.(*corev1.Pod); !ok {
			return inner(from, example, resync, indexers)
		}
		filtered := toolscache.ToListWatcherWithWatchListSemantics(&toolscache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return f.list(ctx, from, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return f.watch(ctx, from, o)
			},
		}, from)
		return limited(inner(filtered, example, resync, indexers), f.keeps)
	}
}

// keeps reports whether the cache has, or is about to have, the pod. Metadata do not show whether a pod is chosen: a leader
// that lists them waits for pods that its cache has in another version, and none of its plans is about any other.
func (f *Filter) keeps(o metav1.Object) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.kept[keyOf(o)]
}

// begin forgets the kept pods: a list follows.
func (f *Filter) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.kept)
}

func (f *Filter) list(ctx context.Context, from toolscache.Lister, o metav1.ListOptions) (runtime.Object, error) {
	if o.Continue == "" {
		f.begin()
	}
	pods, err := list(ctx, from, o, f.keep)
	if err != nil {
		return nil, err
	}
	if pods.Continue == "" {
		f.observed().Listed()
	}
	return pods, nil
}

// keep reports whether the pod is chosen, and records that the cache gets it.
func (f *Filter) keep(pod *corev1.Pod) bool {
	if !f.chosen(pod) {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kept[keyOf(pod)] = true
	return true
}

// drop records that the cache loses the pod, and reports whether it had it.
func (f *Filter) drop(pod *corev1.Pod) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	had := f.kept[keyOf(pod)]
	delete(f.kept, keyOf(pod))
	return had
}

func (f *Filter) watch(ctx context.Context, from toolscache.Watcher, o metav1.ListOptions) (watch.Interface, error) {
	lists := o.SendInitialEvents != nil && *o.SendInitialEvents
	if lists {
		f.begin()
	}
	inner, err := toolscache.ToWatcherWithContext(from).WatchWithContext(ctx, o)
	if err != nil {
		return nil, err
	}
	out := make(chan watch.Event)
	r := &relay{
		filter: f,
		inner:  inner,
		out:    out,
		outer:  watch.NewProxyWatcher(out),
		lists:  lists,
	}
	go r.run()
	return r.outer, nil
}

// relay passes the events of one watch on.
type relay struct {
	filter *Filter
	inner  watch.Interface
	out    chan<- watch.Event
	outer  *watch.ProxyWatcher
	lists  bool // the events are those of a list still
}

func (r *relay) run() {
	defer close(r.out)
	defer r.inner.Stop()
	for {
		select {
		case <-r.outer.StopChan():
			return
		case e, more := <-r.inner.ResultChan():
			if !more {
				return
			}
			passed, ok := r.event(e)
			if !ok {
				continue
			}
			select {
			case r.out <- passed:
			case <-r.outer.StopChan():
				return
			}
		}
	}
}

// event returns the event that the cache gets, and false if it gets none. Of a pod that is not chosen, the cache gets the version:
// it is as new as the server's events are.
func (r *relay) event(e watch.Event) (watch.Event, bool) {
	pod, ok := e.Object.(*corev1.Pod)
	switch {
	case !ok: // an error
		return e, true
	case e.Type == watch.Bookmark:
		if pod.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
			r.lists = false
			r.filter.observed().Listed()
		}
		return e, true
	case e.Type == watch.Deleted && r.filter.drop(pod):
		return e, true
	case e.Type != watch.Deleted && r.filter.keep(pod):
		return e, true
	case r.lists: // pods as they were at the beginning come in any order of versions
		return e, false
	}
	r.filter.observed().Changed(pod)
	if r.filter.drop(pod) {
		return watch.Event{Type: watch.Deleted, Object: pod}, true
	}
	return bookmark(pod.ResourceVersion), true
}
