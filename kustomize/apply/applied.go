package apply

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Applied reports whether Apply wrote an object, also long ago. Who copies an object copies its labels, and not this.
func Applied(object *unstructured.Unstructured) bool {
	return slices.ContainsFunc(object.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == Manager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == ""
	})
}

// ListKinds returns the objects of kinds in all namespaces that a label selector names. A kind that is not served has none.
func (c *Cluster) ListKinds(ctx context.Context, kinds []schema.GroupVersionKind, selector string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, kind := range kinds {
		probe := &unstructured.Unstructured{}
		probe.SetGroupVersionKind(kind)
		_, mapping, err := c.resource(probe)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found, err := c.List(ctx, mapping.Resource, "", selector)
		if err != nil {
			return nil, err
		}
		for i := range found {
			all = append(all, &found[i])
		}
	}
	return all, nil
}
