// Package v1alpha1 holds the older version of WorkloadSpread, which is served and converted.
//
// It has the types, their registration and the names of their values, and no behaviour: all rules read the hub version,
// v1beta1.
// +kubebuilder:object:generate=true
// +groupName=apps.kruise.io
package v1alpha1
