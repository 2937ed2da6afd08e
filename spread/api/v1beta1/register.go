package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the types in this package.
var GroupVersion = schema.GroupVersion{Group: "apps.kruise.io", Version: "v1beta1"}

// WorkloadSpreadKind is the name of the kind.
const WorkloadSpreadKind = "WorkloadSpread"

// AddToScheme registers the kind in this version. It registers no other kind of the group.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &WorkloadSpread{}, &WorkloadSpreadList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
