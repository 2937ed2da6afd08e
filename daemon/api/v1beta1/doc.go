// Package v1beta1 holds the hub and storage versions of NodeImage and ContainerRecreateRequest.
//
// It holds the types as they go over the wire, their registration and the names of their values. It
// must never hold behaviour: defaults and rules stand with the operator that serves the kinds, which
// also converts them from and to their other version.
// +kubebuilder:object:generate=true
// +groupName=apps.kruise.io
package v1beta1

//go:generate ../../../.tools/bin/controller-gen object paths=../...
//go:generate ../../../.tools/bin/controller-gen crd paths=../... output:crd:dir=../../config/crd
//go:generate sh -c "cd ../../config/crd && ../../../.tools/bin/crdschema -conversion-service daemon-webhook < apps.kruise.io_nodeimages.yaml > nodeimages.yaml"
//go:generate sh -c "cd ../../config/crd && ../../../.tools/bin/crdschema -conversion-service daemon-webhook < apps.kruise.io_containerrecreaterequests.yaml > containerrecreaterequests.yaml"
//go:generate sh -c "rm ../../config/crd/apps.kruise.io_*.yaml"
