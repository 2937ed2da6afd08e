// Package v1alpha1 holds the older version of StatefulSet, which is served and converted.
//
// It has the types that differ from v1beta1, their registration, and no behaviour: all rules read the hub version,
// v1beta1.
// +kubebuilder:object:generate=true
// +groupName=apps.kruise.io
package v1alpha1
