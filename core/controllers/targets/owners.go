package targets

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// longestChain is the largest number of owners above each other that are followed: owner references can form a cycle.
const longestChain = 10

// identity identifies an object. An empty UID means whichever object has the name.
type identity struct {
	kind schema.GroupKind
	name types.NamespacedName
	uid  types.UID
}

// Get returns the metadata of an object by name. It belongs to the cache and must not be changed.
func (r *Reader) Get(ctx context.Context, kind schema.GroupKind, name types.NamespacedName) (*metav1.PartialObjectMetadata, error) {
	return r.find(ctx, identity{kind: kind, name: name})
}

// List returns the metadata of all objects of a kind in the namespace. It belongs to the cache and must not be changed.
func (r *Reader) List(ctx context.Context, kind schema.GroupKind, namespace string) ([]*metav1.PartialObjectMetadata, error) {
	mapping, err := r.kinds.get(ctx, kind)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", kind, err)
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(mapping.GroupVersionKind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := r.options.Cache.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list %s: %w", kind, err)
	}
	found := make([]*metav1.PartialObjectMetadata, len(list.Items))
	for i := range list.Items {
		found[i] = &list.Items[i]
	}
	return found, nil
}

// Owners returns the controller of an object in the namespace, the controller of that one, and so on up to the topmost,
// or up to the first of a wanted kind. The chain ends below an owner of a kind that Options.Follow excludes. With an
// error come the owners found so far: the error is about the owner of the last one. An owner of the same name with
// another UID is another object: the owner is gone. The objects belong to the cache and must not be changed.
func (r *Reader) Owners(ctx context.Context, namespace string, object metav1.Object, wanted ...schema.GroupKind) ([]*metav1.PartialObjectMetadata, error) {
	var chain []*metav1.PartialObjectMetadata
	for {
		ref := metav1.GetControllerOfNoCopy(object)
		if ref == nil {
			return chain, nil
		}
		kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
		if r.options.Follow != nil && !r.options.Follow(kind) {
			return chain, nil
		}
		if len(chain) == longestChain {
			return chain, fmt.Errorf("follow the owners of %s/%s: there are more than %d", namespace, chain[0].Name, longestChain)
		}
		owner, err := r.find(ctx, identity{kind, types.NamespacedName{Namespace: namespace, Name: ref.Name}, ref.UID})
		if err != nil {
			return chain, err
		}
		chain = append(chain, owner)
		if slices.Contains(wanted, kind) {
			return chain, nil
		}
		object = owner
	}
}

// find reads the cache, and asks the server once for an object that is not there: an owner is often younger than the last
// event of the cache.
func (r *Reader) find(ctx context.Context, id identity) (*metav1.PartialObjectMetadata, error) {
	mapping, err := r.kinds.get(ctx, id.kind)
	if err != nil {
		err = fmt.Errorf("get %s: %w", id, err)
		if r.options.ByScale && apierrors.IsForbidden(err) {
			return r.findByScale(ctx, id, err)
		}
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		id.name.Namespace = ""
	}
	object := metadataOf(mapping)
	err = r.options.Cache.Get(ctx, id.name, object, client.UnsafeDisableDeepCopyOption(true))
	if err == nil && (id.uid == "" || id.uid == object.UID) {
		r.recent.Remove(id) // once the cache has it, the cache reports its deletion
		return object, nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("get %s: %w", id, err)
	}
	if known, ok := r.recent.Get(id); ok {
		return known.(answer).object, known.(answer).err
	}
	return ask(ctx, r.patience, &r.asking, id.String(), func(ctx context.Context) (*metav1.PartialObjectMetadata, error) {
		object, err := r.askFor(ctx, mapping, id)
		err = r.patience.failed(ctx, id.String(), err)
		r.recent.Add(id, answer{object, err}, r.patience.life(err, youngTTL))
		return object, err
	})
}

type answer struct {
	object *metav1.PartialObjectMetadata
	err    error
}

func (r *Reader) askFor(ctx context.Context, mapping *meta.RESTMapping, id identity) (*metav1.PartialObjectMetadata, error) {
	object := metadataOf(mapping)
	err := r.options.Live.Get(ctx, id.name, object)
	if err == nil && id.uid != "" && id.uid != object.UID {
		err = apierrors.NewNotFound(mapping.Resource.GroupResource(), id.name.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", id, err)
	}
	return object, nil
}

// String returns the identity as text, such as ReplicaSet.apps shop/web-5d8f (7a3e).
func (id identity) String() string {
	text := id.kind.String() + " " + id.name.Name
	if id.name.Namespace != "" {
		text = id.kind.String() + " " + id.name.String()
	}
	if id.uid != "" {
		text += " (" + string(id.uid) + ")"
	}
	return text
}
