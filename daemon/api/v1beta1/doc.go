// Package v1beta1 holds the hub and storage versions of NodeImage and ContainerRecreateRequest.
//
// It has the types, their registration and the names of their values, and no behaviour: defaults, validation and
// conversion are in the operator that serves the kinds.
// +kubebuilder:object:generate=true
// +groupName=apps.kruise.io
package v1beta1

//go:generate ../../../.tools/bin/controller-gen object paths=../...
//go:generate ../../../.tools/bin/controller-gen crd paths=../... output:crd:dir=../../config/crd
//go:generate sh -c "cd ../../config/crd && ../../../.tools/bin/crdschema -conversion-service daemon-webhook < apps.kruise.io_nodeimages.yaml > nodeimages.yaml"
//go:generate sh -c "cd ../../config/crd && ../../../.tools/bin/crdschema -conversion-service daemon-webhook < apps.kruise.io_containerrecreaterequests.yaml > containerrecreaterequests.yaml"
//go:generate sh -c "rm ../../config/crd/apps.kruise.io_*.yaml"
