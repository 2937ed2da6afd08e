// Package v1beta1 holds the hub and storage version of WorkloadSpread.
//
// It has the types, their registration and the names of their values, and no behaviour: validation and conversion are in
// the operator that serves the kind.
// +kubebuilder:object:generate=true
// +groupName=apps.kruise.io
package v1beta1

//go:generate ../../../.tools/bin/controller-gen object paths=../...
//go:generate ../../../.tools/bin/controller-gen crd paths=../... output:crd:dir=../../config/crd
//go:generate sh -c "cd ../../config/crd && ../../../.tools/bin/crdschema -conversion-service spread-webhook < apps.kruise.io_workloadspreads.yaml > workloadspreads.yaml"
//go:generate sh -c "rm ../../config/crd/apps.kruise.io_*.yaml"
