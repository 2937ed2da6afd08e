package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/catalog"
)

// held are the objects of a resource that only their operator lets go.
type held struct {
	resource schema.GroupResource
	names    []string
}

// heldOf returns the objects that have a finalizer of an operator. Finalizers of others are theirs.
func heldOf(resource schema.GroupResource, objects []unstructured.Unstructured) held {
	found := held{resource: resource}
	for _, object := range objects {
		if slices.ContainsFunc(object.GetFinalizers(), func(name string) bool {
			domain, _, _ := strings.Cut(name, "/")
			return strings.HasSuffix(domain, ".kruise.io")
		}) {
			name := object.GetName()
			if namespace := object.GetNamespace(); namespace != "" {
				name = namespace + "/" + name
			}
			found.names = append(found.names, name)
		}
	}
	return found
}

// String names the objects, the first ones if they are many.
func (h held) String() string {
	return fmt.Sprintf("%s: %s a finalizer that only the operator removes: %s", h.resource,
		apply.Count(len(h.names), "object has", "objects have"), firstOf(h.names))
}

// firstOf joins names, the first ones if they are many.
func firstOf(names []string) string {
	const named = 3
	text := strings.Join(names[:min(named, len(names))], ", ")
	if more := len(names) - named; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// tellHeld prints which objects of a feature cannot be deleted when its operator is gone. Objects that cannot be listed do
// not block the removal of a broken operator.
func (u *uninstaller) tellHeld(ctx context.Context, cluster *apply.Cluster, feature catalog.Feature) error {
	objects, err := removable(ctx, cluster, feature)
	if err != nil {
		return err
	}
	works := slices.ContainsFunc(objects, func(object *unstructured.Unstructured) bool {
		available, _, _ := unstructured.NestedInt64(object.Object, "status", "availableReplicas")
		return object.GetKind() == "Deployment" && object.GetName() == feature.Name+"-manager" && available > 0
	})
	var faults []error
	for _, crd := range ofStage(objects, apply.CRDs) {
		resource := ResourceOf(crd)
		list, err := cluster.List(ctx, resource, "", "")
		if err != nil {
			u.warnOf(fmt.Sprintf("%s: finalizers of its objects cannot be checked: %s", resource.GroupResource(), err))
			continue
		}
		found := heldOf(resource.GroupResource(), list)
		switch {
		case len(found.names) == 0:
		case !u.crds:
			u.warnOf(fmt.Sprintf("%s. Until the operator is installed again, the deletion of these objects and of their namespaces waits", found))
		case !works:
			faults = append(faults, fmt.Errorf("%s. Their deletion would wait forever, because operator %s is not available: run flotilla install %[2]s first, "+
				"or remove the finalizers", found, feature.Name))
		}
	}
	return errors.Join(faults...)
}
