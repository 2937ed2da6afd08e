package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the types in this package.
var GroupVersion = schema.GroupVersion{Group: "apps.kruise.io", Version: "v1alpha1"}

// Kind is the name of the one kind in this package. The built-in kind of the same name is of group apps.
const Kind = "DaemonSet"

// AddToScheme registers DaemonSet in this version. It registers no other kind of the group.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &DaemonSet{}, &DaemonSetList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
