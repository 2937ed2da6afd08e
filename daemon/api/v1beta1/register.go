package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the types in this package.
var GroupVersion = schema.GroupVersion{Group: "apps.kruise.io", Version: "v1beta1"}

// Names of the kinds in this package.
const (
	NodeImageKind                = "NodeImage"
	ContainerRecreateRequestKind = "ContainerRecreateRequest"
)

// AddToScheme registers both kinds in this version. It registers no other kind of the group.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&NodeImage{}, &NodeImageList{},
		&ContainerRecreateRequest{}, &ContainerRecreateRequestList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
