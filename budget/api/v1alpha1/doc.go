// Package v1alpha1 holds the older version of PodUnavailableBudget, which is served and converted.
//
// It holds the type as it goes over the wire and its registration. What is the same in both versions has one Go type, in
// v1beta1. It must never hold behaviour: every rule reads the hub version, v1beta1.
// +kubebuilder:object:generate=true
// +groupName=policy.kruise.io
package v1alpha1
