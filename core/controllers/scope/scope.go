package scope

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// NewInformer makes an informer, as cache.Options.NewInformer does.
type NewInformer = func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer

// Source has the functions that a scope reads with.
type Source struct {
	// Namespaces waits until it is known which namespaces matter, and returns them. It calls add with each that begins to
	// matter later, in any order, and maybe twice.
	Namespaces func(ctx context.Context, add func(namespace string)) ([]string, error)
	// List returns the pods of a namespace as they are at that version. An error that satisfies IsResourceExpired or IsGone
	// means that the server does not know any more.
	List func(ctx context.Context, namespace, version string) (*corev1.PodList, error)
}

// Scope is the set of namespaces with cached pods. It is safe for concurrent use.
type Scope struct {
	mu     sync.Mutex
	clock  clock.Clock
	source Source
	store  toolscache.Store
	open   map[string]*delivery // by namespace
	asked  map[string]bool      // namespaces that are not open yet
	wake   chan struct{}
}

// delivery is how far the cache has got with the pods of a namespace.
type delivery struct {
	listed  bool
	missing map[string]string // keys of listed pods that the store has not shown yet, to their versions
}

// New returns a scope without namespaces.
func New(c clock.Clock) *Scope {
	return &Scope{
		clock: c,
		open:  map[string]*delivery{},
		asked: map[string]bool{},
		wake:  make(chan struct{}, 1),
	}
}

// From sets the source of the scope. Call it before the cache starts.
func (s *Scope) From(source Source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.source = source
}

// Limit returns the function that makes informers. Informers of pods have only the pods of the scope.
func (s *Scope) Limit(inner NewInformer) NewInformer {
	return func(from toolscache.ListerWatcher, example runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		if _, ok := example.(*corev1.Pod); !ok {
			return inner(from, example, resync, indexers)
		}
		informer := inner(&lister{scope: s, from: from}, example, resync, indexers)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.store = informer.GetStore()
		return limited(informer, s.keeps)
	}
}

// limited returns the informer with a store that reports which objects it keeps.
func limited(informer toolscache.SharedIndexInformer, keeps func(metav1.Object) bool) *limitedInformer {
	return &limitedInformer{informer, &limitedStore{informer.GetIndexer(), keeps}}
}

// limitedInformer is an informer with a store that reports which objects it keeps.
type limitedInformer struct {
	toolscache.SharedIndexInformer

	store *limitedStore
}

// GetStore is part of toolscache.SharedInformer.
func (i *limitedInformer) GetStore() toolscache.Store { return i.store }

// GetIndexer is part of toolscache.SharedIndexInformer.
func (i *limitedInformer) GetIndexer() toolscache.Indexer { return i.store }

type limitedStore struct {
	toolscache.Indexer

	keeps func(metav1.Object) bool
}

// Keeps reports whether the store may have that object: a leader does not wait for others.
func (s *limitedStore) Keeps(o metav1.Object) bool { return s.keeps(o) }

// keeps reports whether the cache has the pods of the object's namespace.
func (s *Scope) keeps(o metav1.Object) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[o.GetNamespace()] != nil
}

// Add has the pods of the namespace cached from now on.
func (s *Scope) Add(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[namespace] != nil || s.asked[namespace] {
		return
	}
	s.ask(namespace)
}

func (s *Scope) ask(namespace string) {
	s.asked[namespace] = true
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Complete reports whether the cache has the pods that the namespace had when it was added.
func (s *Scope) Complete(namespace string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.open[namespace]
	if d == nil || !d.listed || s.store == nil {
		return false
	}
	for key, version := range d.missing {
		if !s.shows(key, version) {
			return false
		}
		delete(d.missing, key)
	}
	return true
}

// prune forgets the missing pods that the store shows, for all namespaces. Complete does the same, but may never be
// called.
func (s *Scope) prune() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.open {
		maps.DeleteFunc(d.missing, s.shows)
	}
}

// shows reports whether the store has the object, in this version or a later one.
func (s *Scope) shows(key, version string) bool {
	item, found, err := s.store.GetByKey(key)
	pod, ok := item.(*corev1.Pod)
	if err != nil || !found || !ok {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(pod.ResourceVersion, version)
	return err == nil && order >= 0
}

// reopen begins again with the namespaces that matter: the next list of the server has all objects that the cache will
// have. Until then the cache stays as it is.
func (s *Scope) reopen(namespaces []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.open
	s.open = make(map[string]*delivery, len(namespaces))
	for namespace, d := range before {
		if !d.listed { // the list before this one has failed
			s.asked[namespace] = true
		}
	}
	for _, namespace := range slices.Concat(namespaces, slices.Collect(maps.Keys(s.asked))) {
		s.open[namespace] = &delivery{missing: map[string]string{}}
		if d := before[namespace]; d != nil && d.listed {
			maps.DeleteFunc(d.missing, s.shows)
			s.open[namespace].listed = len(d.missing) == 0
		}
	}
	clear(s.asked)
}

// listed records that all pods of the open namespaces have been handed over.
func (s *Scope) listed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.open {
		d.listed = true
	}
}

// passes reports whether events of the pod are passed on.
func (s *Scope) passes(pod *corev1.Pod, deleted bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.open[pod.Namespace]
	switch {
	case d == nil:
		return false
	case deleted:
		delete(d.missing, keyOf(pod))
	case !d.listed:
		d.missing[keyOf(pod)] = pod.ResourceVersion
	}
	return true
}

// next returns a namespace that is to be opened, and false if there is none.
func (s *Scope) next() (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for namespace := range s.asked {
		return namespace, true
	}
	return "", false
}

// opened records that the pods of the namespace have been handed over.
func (s *Scope) opened(namespace string, pods []corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := &delivery{listed: true, missing: make(map[string]string, len(pods))}
	for i := range pods {
		d.missing[keyOf(&pods[i])] = pods[i].ResourceVersion
	}
	s.open[namespace] = d
	delete(s.asked, namespace)
}

func keyOf(pod metav1.Object) string { return pod.GetNamespace() + "/" + pod.GetName() }

// close has a namespace handed over again after only some of its pods were.
func (s *Scope) close(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, namespace)
	s.ask(namespace)
}
