// Package v1alpha1 holds the older versions of AdvancedCronJob, BroadcastJob, ImagePullJob and ImageListPullJob, which
// are served and converted.
//
// It holds the types as they go over the wire and their registration. Specs and statuses that are the same in both
// versions have one Go type, in v1beta1. It must never hold behaviour: every rule reads the hub version, v1beta1.
// +kubebuilder:object:generate=true
// +groupName=apps.kruise.io
package v1alpha1
