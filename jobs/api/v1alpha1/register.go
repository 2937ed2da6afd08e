package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the types in this package.
var GroupVersion = schema.GroupVersion{Group: "apps.kruise.io", Version: "v1alpha1"}

// Names of the kinds in this package.
const (
	AdvancedCronJobKind  = "AdvancedCronJob"
	BroadcastJobKind     = "BroadcastJob"
	ImagePullJobKind     = "ImagePullJob"
	ImageListPullJobKind = "ImageListPullJob"
)

// AddToScheme registers the four kinds in this version. It registers no other kind of the group.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&AdvancedCronJob{}, &AdvancedCronJobList{},
		&BroadcastJob{}, &BroadcastJobList{},
		&ImagePullJob{}, &ImagePullJobList{},
		&ImageListPullJob{}, &ImageListPullJobList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
