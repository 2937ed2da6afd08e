package informers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
)

// Cache shows a view as the informers of an operator's cache would: of each kind the objects that the cache's options
// select, transformed, and with the indexes that the operator adds. A fastclient.Reader reads it as it reads a cache of
// a server.
type Cache struct {
	cache.Cache // nil: nothing else is asked of a cache in a world

	world    *cluster.World
	view     *cluster.View
	fallback toolscache.TransformFunc
	kinds    map[string]cache.ByObject
	indexes  map[indexOf]client.IndexerFunc
	shown    map[action.Object]action.Object // what a stored object has become
}

// indexOf is an index of a kind.
type indexOf struct{ kind, field string }

// New returns a cache with the options, which shows nothing yet.
func New(w *cluster.World, o cache.Options) *Cache {
	c := &Cache{
		world:    w,
		fallback: o.DefaultTransform,
		kinds:    map[string]cache.ByObject{},
		indexes:  map[indexOf]client.IndexerFunc{},
		shown:    map[action.Object]action.Object{},
	}
	for kind, settings := range o.ByObject {
		c.kinds[cluster.KindOf(kind)] = settings
	}
	return c
}

// Show makes the cache show the view.
func (c *Cache) Show(v *cluster.View) { c.view = v }

// IndexField implements client.FieldIndexer.
func (c *Cache) IndexField(_ context.Context, kind client.Object, field string, index client.IndexerFunc) error {
	c.indexes[indexOf{cluster.KindOf(kind), field}] = index
	return nil
}

// GetInformer returns an informer that has synced, for its store.
func (c *Cache) GetInformer(_ context.Context, kind client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	return informer{store: &store{cache: c, kind: cluster.KindOf(kind)}}, nil
}

// List reads the objects with a value of an index, of kinds without a Go type.
func (c *Cache) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	untyped, ok := list.(*unstructured.UnstructuredList)
	if !ok {
		return fmt.Errorf("only kinds without a Go type are listed, not %T", list)
	}
	var o client.ListOptions
	o.ApplyOptions(options)
	of := strings.TrimSuffix(untyped.GetKind(), "List")
	for _, object := range c.list(of) {
		matches := object.GetNamespace() == o.Namespace
		for _, r := range o.FieldSelector.Requirements() {
			matches = matches && c.has(object, indexOf{of, r.Field}, r.Value)
		}
		if matches {
			untyped.Items = append(untyped.Items, *object.(*unstructured.Unstructured).DeepCopy())
		}
	}
	return nil
}

// show returns what the cache holds of an object, nil for nothing, the same copy for each look.
func (c *Cache) show(o action.Object) action.Object {
	settings := c.kinds[cluster.KindOf(o)]
	if settings.Label != nil && !settings.Label.Matches(labels.Set(o.GetLabels())) {
		return nil
	}
	shown := c.shown[o]
	if shown == nil {
		shown = c.transformed(o, settings)
		c.shown[o] = shown
		c.world.WatchForChanges(shown)
	}
	return shown
}

func (c *Cache) transformed(o action.Object, settings cache.ByObject) action.Object {
	o = o.DeepCopyObject().(action.Object)
	if pod, ok := o.(*corev1.Pod); ok && pod.Spec.RestartPolicy == "" { // every server sets it
		pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	}
	transform := settings.Transform
	if transform == nil {
		transform = c.fallback
	}
	if transform == nil {
		return o
	}
	changed, err := transform(o)
	if err != nil {
		panic(fmt.Sprintf("%T %s cannot be cached: %v", o, o.GetName(), err))
	}
	return changed.(action.Object)
}

// list returns what the cache holds of a kind.
func (c *Cache) list(kind string) []action.Object {
	var all []action.Object
	for _, o := range c.view.Objects(kind) {
		if shown := c.show(o); shown != nil {
			all = append(all, shown)
		}
	}
	return all
}

func (c *Cache) has(o action.Object, index indexOf, value string) bool {
	values := c.indexes[index]
	return values != nil && slices.Contains(values(o), value)
}

// informer is that of one kind.
type informer struct {
	cache.Informer // nil

	store *store
}

// HasSynced says that the cache is filled.
func (informer) HasSynced() bool { return true }

// GetIndexer returns the store.
func (i informer) GetIndexer() toolscache.Indexer { return i.store }

// store has the objects of one kind.
type store struct {
	toolscache.Indexer // nil

	cache *Cache
	kind  string
}

var errNoIndex = errors.New("the cache has no such index")

// GetByKey returns the object of the name.
func (s *store) GetByKey(key string) (item any, exists bool, err error) {
	name, err := toolscache.ParseObjectName(key)
	if err != nil {
		return nil, false, err
	}
	o := s.cache.view.Stored(s.kind, name.AsNamespacedName())
	if o == nil {
		return nil, false, nil
	}
	shown := s.cache.show(o)
	return shown, shown != nil, nil
}

// List returns all objects.
func (s *store) List() []any { return s.filter(func(action.Object) bool { return true }) }

// ByIndex returns the objects of a namespace, or those that have a value of an index.
func (s *store) ByIndex(name, value string) ([]any, error) {
	if name == toolscache.NamespaceIndex {
		return s.filter(func(o action.Object) bool { return o.GetNamespace() == value }), nil
	}
	field, isField := strings.CutPrefix(name, "field:")
	index := indexOf{s.kind, field}
	if !isField || s.cache.indexes[index] == nil {
		return nil, fmt.Errorf("%w: %s of %s", errNoIndex, name, s.kind)
	}
	namespace, value, _ := strings.Cut(value, "/")
	return s.filter(func(o action.Object) bool {
		return (o.GetNamespace() == namespace || namespace == "__all_namespaces") && s.cache.has(o, index, value)
	}), nil
}

func (s *store) filter(keep func(action.Object) bool) []any {
	var items []any
	for _, o := range s.cache.list(s.kind) {
		if keep(o) {
			items = append(items, o)
		}
	}
	return items
}
