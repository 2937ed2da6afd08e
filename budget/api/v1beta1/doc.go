// Package v1beta1 holds the hub and storage version of PodUnavailableBudget.
//
// It holds the types as they go over the wire, their registration and the names of their values. It must never hold
// behaviour: rules stand with the operator that serves the kind, which also converts it from and to its other version.
// +kubebuilder:object:generate=true
// +groupName=policy.kruise.io
package v1beta1

//go:generate ../../../.tools/bin/controller-gen object paths=../...
//go:generate ../../../.tools/bin/controller-gen crd paths=../... output:crd:dir=../../config/crd
//go:generate sh -c "cd ../../config/crd && ../../../.tools/bin/crdschema -conversion-service budget-webhook < policy.kruise.io_podunavailablebudgets.yaml > podunavailablebudgets.yaml"
//go:generate sh -c "rm ../../config/crd/policy.kruise.io_*.yaml"
