package targets

import (
	"context"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Caches reports whether objects of the kind are read from a cache, which reports their changes.
func (r *Reader) Caches(kind schema.GroupKind) bool {
	_, cached := r.kinds.cached.Load(kind)
	return cached
}

// IsClusterScoped reports whether objects of the kind belong to no namespace, if the cluster serves it.
func (r *Reader) IsClusterScoped(kind schema.GroupKind) bool {
	mapping, err := r.options.Mapper.RESTMapping(kind)
	return err == nil && mapping.Scope.Name() == meta.RESTScopeNameRoot
}

// findByScale returns the name, the UID and the wanted pods of an object from its scale, as read at most ten seconds ago.
// It returns the error denied if the scale is not available.
func (r *Reader) findByScale(ctx context.Context, id identity, denied error) (*metav1.PartialObjectMetadata, error) {
	mapping, err := r.options.Mapper.RESTMapping(id.kind)
	if err != nil || mapping.Scope.Name() == meta.RESTScopeNameRoot || !r.hasScale(id.kind, mapping) {
		return nil, denied
	}
	if known, ok := r.recent.Get(id); ok {
		return known.(answer).object, known.(answer).err
	}
	return ask(ctx, r.patience, &r.asking, "scale/"+id.String(), func(ctx context.Context) (*metav1.PartialObjectMetadata, error) {
		asked := r.options.Clock.Now()
		scale, err := r.askScale(ctx, mapping, id.name)
		if err == nil && id.uid != "" && id.uid != scale.UID {
			err = apierrors.NewNotFound(mapping.Resource.GroupResource(), id.name.Name)
		}
		if apierrors.IsForbidden(err) {
			err = denied
		}
		if err != nil {
			err = r.patience.failed(ctx, "scale/"+id.String(), fmt.Errorf("get the scale of %s: %w", id, err))
			r.recent.Add(id, answer{nil, err}, r.patience.life(err, 0))
			return nil, err
		}
		object := metadataOf(mapping)
		object.Namespace = id.name.Namespace
		object.Name = id.name.Name
		object.UID = scale.UID
		object.ResourceVersion = scale.ResourceVersion
		r.replicas.Add(scale.UID, remembered{
			version:  scale.ResourceVersion,
			replicas: replicasOf(scale),
			asked:    asked,
			until:    asked.Add(retryInterval),
		})
		r.recent.Add(id, answer{object, nil}, retryInterval)
		r.kinds.leave(id.kind, denied)
		return object, nil
	})
}

// askScale reads the scale of an object.
func (r *Reader) askScale(ctx context.Context, mapping *meta.RESTMapping, name types.NamespacedName) (*autoscalingv1.Scale, error) {
	answer, err := r.scales.Resource(mapping.Resource).Namespace(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{}, "scale")
	if err != nil {
		return nil, err
	}
	scale := &autoscalingv1.Scale{}
	return scale, runtime.DefaultUnstructuredConverter.FromUnstructured(answer.Object, scale)
}

func replicasOf(scale *autoscalingv1.Scale) Replicas {
	return Replicas{
		Spec:     scale.Spec.Replicas,
		Status:   scale.Status.Replicas,
		Selector: scale.Status.Selector,
	}
}
