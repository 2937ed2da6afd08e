package takeover

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-project/flotilla/kustomize/install"
)

// crdKind is the kind of definitions.
const crdKind = "CustomResourceDefinition"

// definitionOf returns the definition with the name, without content.
func definitionOf(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       crdKind,
		"metadata":   map[string]any{"name": name},
	}}
}

// Kind is a kind that changes hands.
type Kind struct {
	Group, Version, Resource, Name string
}

// CRD returns the name of its definition.
func (k Kind) CRD() string { return k.Resource + "." + k.Group }

// kindsOf returns the kinds that manifests define, in their order.
func kindsOf(manifests []*unstructured.Unstructured) []Kind {
	var kinds []Kind
	for _, object := range manifests {
		if object.GetKind() != crdKind {
			continue
		}
		resource := install.ResourceOf(object)
		name, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
		kinds = append(kinds, Kind{
			Group:    resource.Group,
			Version:  resource.Version,
			Resource: resource.Resource,
			Name:     name,
		})
	}
	return kinds
}

// among reports whether a resource of a webhook's rule, such as "clonesets/status", is one of the kinds.
func among(kinds []Kind, group, resource string) bool {
	name, _, _ := strings.Cut(resource, "/")
	return slices.ContainsFunc(kinds, func(k Kind) bool { return k.Group == group && k.Resource == name })
}

// owns reports whether an object of one of the kinds owns the object.
func owns(kinds []Kind, object *unstructured.Unstructured) bool {
	for _, owner := range object.GetOwnerReferences() {
		group, _, _ := strings.Cut(owner.APIVersion, "/")
		if slices.ContainsFunc(kinds, func(k Kind) bool { return k.Group == group && k.Name == owner.Kind }) {
			return true
		}
	}
	return false
}
