package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the types in this package.
var GroupVersion = schema.GroupVersion{Group: "policy.kruise.io", Version: "v1alpha1"}

// PodUnavailableBudgetKind is the name of the kind in this package.
const PodUnavailableBudgetKind = "PodUnavailableBudget"

// AddToScheme registers the kind in this version. It registers no other kind of the group.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &PodUnavailableBudget{}, &PodUnavailableBudgetList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
