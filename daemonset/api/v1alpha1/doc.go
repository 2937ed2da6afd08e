// Package v1alpha1 holds the older version of DaemonSet, which is served and converted.
//
// It holds the types as they go over the wire and their registration. The types that both versions share
// are in v1beta1. It must never hold behaviour: every rule reads the hub version,
// v1beta1.
// +kubebuilder:object:generate=true
// +groupName=apps.kruise.io
package v1alpha1
