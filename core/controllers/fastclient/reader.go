package fastclient

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Object is a pointer to T that is a Kubernetes object.
type Object[T any] interface {
	*T
	client.Object
}

// Options change how a Reader returns objects.
type Options struct {
	// Copy makes every object a deep copy (flag --disable-no-deepcopy).
	Copy bool
	// Detector, if set, observes every object that is handed out. For tests.
	Detector *Detector
	// Over returns the indexer to read in place of the store of a kind, such as a store that shows more; nil leaves it as
	// it is.
	Over func(toolscache.Indexer) toolscache.Indexer
}

// Reader reads from the informers of a cache. It is safe for concurrent use.
type Reader struct {
	cache   cache.Cache
	scheme  *runtime.Scheme
	options Options
	stores  sync.Map // reflect.Type of the object to its toolscache.Indexer
}

// NewReader returns a Reader of the cache; the scheme knows the kinds.
func NewReader(c cache.Cache, scheme *runtime.Scheme, o Options) *Reader {
	return &Reader{cache: c, scheme: scheme, options: o}
}

// Owned lists the objects of type T in the namespace that have the owner, controlling or not, in no
// particular order. The objects belong to the cache: they must not be changed. IndexOwners must
// have been called for the kind.
func Owned[T any, P Object[T]](ctx context.Context, r *Reader, namespace string, owner types.UID) ([]*T, error) {
	return ByIndex[T, P](ctx, r, namespace, OwnerIndex, string(owner))
}

// Controlled lists the objects in the cache that the owner controls.
func Controlled[T any, P Object[T]](ctx context.Context, r *Reader, owner client.Object) ([]*T, error) {
	all, err := Owned[T, P](ctx, r, owner.GetNamespace(), owner.GetUID())
	return slices.DeleteFunc(all, func(o *T) bool { return !metav1.IsControlledBy(P(o), owner) }), err
}

// Uncontrolled lists the objects of type T in the namespace that have no controlling owner, in no particular
// order. The objects belong to the cache: they must not be changed. IndexUncontrolled must have been called for
// the kind.
func Uncontrolled[T any, P Object[T]](ctx context.Context, r *Reader, namespace string) ([]*T, error) {
	return ByIndex[T, P](ctx, r, namespace, uncontrolledIndex, "true")
}

// ByIndex lists the objects of type T with the value in the index, in one namespace or, when it is empty, in all, in no
// particular order. The objects belong to the cache: they must not be changed.
func ByIndex[T any, P Object[T]](ctx context.Context, r *Reader, namespace, index, value string) ([]*T, error) {
	store, err := r.store(ctx, P(new(T)))
	if err != nil {
		return nil, err
	}
	if store == nil {
		return list[T, P](ctx, r, client.InNamespace(namespace), client.MatchingFields{index: value})
	}
	items, err := store.ByIndex(indexName(index), indexKey(namespace, value))
	if err != nil {
		return nil, fmt.Errorf("list %T by %s: %w", *new(T), index, err)
	}
	return handOut[T, P](r, items), nil
}

// All lists the objects of type T in one namespace or, when it is empty, in all, in no particular
// order. The objects belong to the cache: they must not be changed.
func All[T any, P Object[T]](ctx context.Context, r *Reader, namespace string) ([]*T, error) {
	store, err := r.store(ctx, P(new(T)))
	if err != nil {
		return nil, err
	}
	if store == nil {
		return list[T, P](ctx, r, client.InNamespace(namespace))
	}
	items := store.List()
	if namespace != "" {
		if items, err = store.ByIndex(toolscache.NamespaceIndex, namespace); err != nil {
			return nil, fmt.Errorf("list %T in %s: %w", *new(T), namespace, err)
		}
	}
	return handOut[T, P](r, items), nil
}

// Get returns the object of type T from the cache. If it does not exist, or a transform has replaced it by an object of
// another type, the error satisfies apierrors.IsNotFound. The object belongs to the cache: it must not be changed.
func Get[T any, P Object[T]](ctx context.Context, r *Reader, key types.NamespacedName) (*T, error) {
	store, err := r.store(ctx, P(new(T)))
	if err != nil {
		return nil, err
	}
	if store == nil {
		object := P(new(T))
		if err := r.cache.Get(ctx, key, object, client.UnsafeDisableDeepCopyOption(!r.options.Copy)); err != nil {
			return nil, err
		}
		return r.observe(object).(P), nil
	}
	item, found, err := store.GetByKey(nameOf(key))
	if err != nil {
		return nil, fmt.Errorf("get %T %s: %w", *new(T), key, err)
	}
	if _, whole := item.(P); !found || !whole {
		gvk, _ := apiutil.GVKForObject(P(new(T)), r.scheme)
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, key.Name)
	}
	return handOut[T, P](r, []any{item})[0], nil
}

// Edited reports whether the cache shows that the object is gone or that its generation is newer than the given object's.
// For a kind that was never read here it returns false. It is cheap enough to be asked before each write.
func (r *Reader) Edited(object client.Object) bool {
	store, known := r.stores.Load(reflect.TypeOf(object))
	if !known {
		return false
	}
	item, found, err := store.(toolscache.Indexer).GetByKey(nameOf(client.ObjectKeyFromObject(object)))
	if err != nil {
		return false
	}
	if !found {
		return true
	}
	current, ok := item.(client.Object)
	ok = ok && reflect.TypeOf(item) == reflect.TypeOf(object) // and no transform has replaced it
	return ok && (current.GetUID() != object.GetUID() || current.GetGeneration() > object.GetGeneration())
}

// store returns the informer's indexer, or nil when the cache has more than one for the kind, as a cache of several
// namespaces has.
func (r *Reader) store(ctx context.Context, object client.Object) (toolscache.Indexer, error) {
	kind := reflect.TypeOf(object)
	if store, ok := r.stores.Load(kind); ok {
		return store.(toolscache.Indexer), nil
	}
	informer, err := r.cache.GetInformer(ctx, object)
	if err != nil {
		return nil, fmt.Errorf("get the informer of %T: %w", object, err)
	}
	single, ok := informer.(interface{ GetIndexer() toolscache.Indexer })
	if !ok {
		return nil, nil
	}
	if !informer.HasSynced() {
		return nil, fmt.Errorf("the cache of %T has yet to fill", object)
	}
	store := single.GetIndexer()
	if r.options.Over != nil {
		store = r.options.Over(store)
	}
	r.stores.Store(kind, store)
	return store, nil
}

func handOut[T any, P Object[T]](r *Reader, items []any) []*T {
	objects := make([]*T, 0, len(items))
	for _, item := range items {
		object, ok := item.(P)
		if !ok {
			continue // a transform has replaced an object that no code reads
		}
		if r.options.Copy {
			object = object.DeepCopyObject().(P)
		}
		if r.options.Detector != nil {
			r.options.Detector.Observe(object)
		}
		objects = append(objects, (*T)(object))
	}
	return objects
}

// list uses the cache's own List, which copies the outer struct of each item.
func list[T any, P Object[T]](ctx context.Context, r *Reader, o ...client.ListOption) ([]*T, error) {
	gvk, err := apiutil.GVKForObject(P(new(T)), r.scheme)
	if err != nil {
		return nil, err
	}
	made, err := r.scheme.New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err != nil {
		return nil, fmt.Errorf("make a list of %s: %w", gvk.Kind, err)
	}
	objects, ok := made.(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("%T is not a list of objects", made)
	}
	if err := r.cache.List(ctx, objects, append(o, client.UnsafeDisableDeepCopyOption(!r.options.Copy))...); err != nil {
		return nil, err
	}
	var found []*T
	err = meta.EachListItem(objects, func(item runtime.Object) error {
		found = append(found, (*T)(r.observe(item.(P)).(P)))
		return nil
	})
	return found, err
}

func (r *Reader) observe(object client.Object) client.Object {
	if r.options.Detector != nil {
		r.options.Detector.Observe(object)
	}
	return object
}

// nameOf is the key of an object in a store.
func nameOf(key types.NamespacedName) string {
	return toolscache.NewObjectName(key.Namespace, key.Name).String()
}

// indexName and indexKey have the form in which controller-runtime keeps indexes that are added through its
// FieldIndexer. They are not exported there; a test compares them.
func indexName(field string) string { return "field:" + field }

func indexKey(namespace, value string) string {
	if namespace == "" {
		namespace = "__all_namespaces"
	}
	return namespace + "/" + value
}

func groupOf(apiVersion string) string {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return ""
	}
	return gv.Group
}
