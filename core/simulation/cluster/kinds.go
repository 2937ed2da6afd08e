package cluster

import (
	"reflect"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/plan/action"
)

// KeyOf returns the namespace and the name of an object.
func KeyOf(o action.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// KindOf names the kind of an object also where its type meta is empty, as it is in caches.
func KindOf(o action.Object) string {
	switch o.(type) {
	case *corev1.Pod:
		return "Pod"
	case *corev1.PersistentVolumeClaim:
		return "PersistentVolumeClaim"
	case *appsv1.ControllerRevision:
		return "ControllerRevision"
	}
	if kind := o.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	return reflect.TypeOf(o).Elem().Name()
}

// isBuiltIn says that the kind is compiled into the server, so that it knows strategic merges.
func isBuiltIn(o action.Object) bool {
	return strings.HasPrefix(reflect.TypeOf(o).Elem().PkgPath(), "k8s.io/api/")
}

// hasGeneration reports whether the server counts changes of the spec.
func hasGeneration(o action.Object) bool {
	switch o.(type) {
	case *corev1.PersistentVolumeClaim, *appsv1.ControllerRevision, *corev1.Node:
		return false
	}
	return true
}

func kindFor[T action.Object]() string { return reflect.TypeFor[T]().Elem().Name() }

// ControllerOf returns the UID of the controller of an object, empty if it has none.
func ControllerOf(o action.Object) types.UID {
	refs := o.GetOwnerReferences()
	for i := range refs {
		if refs[i].Controller != nil && *refs[i].Controller {
			return refs[i].UID
		}
	}
	return ""
}

// PlainKind names the kind of an object, with Workload for every kind that a workload does not own.
func PlainKind(o action.Object) string {
	switch kind := KindOf(o); kind {
	case "Pod", "PersistentVolumeClaim", "ControllerRevision":
		return kind
	}
	return "Workload"
}

// ResourceOf names the resource of an object in errors.
func ResourceOf(o action.Object) schema.GroupResource {
	gvk := o.GetObjectKind().GroupVersionKind()
	return schema.GroupResource{Group: gvk.Group, Resource: strings.ToLower(KindOf(o)) + "s"}
}

func invalid(o action.Object, errs ...*field.Error) error {
	return apierrors.NewInvalid(schema.GroupKind{Kind: KindOf(o)}, o.GetName(), errs)
}
