// Package v1alpha1 holds the older versions of NodeImage and ContainerRecreateRequest, which are served
// and converted.
//
// It holds the types as they go over the wire, their registration and the names of their values. It
// must never hold behaviour: every rule reads the hub version, v1beta1.
// +kubebuilder:object:generate=true
// +groupName=apps.kruise.io
package v1alpha1
