// Package v1beta1 holds the hub and storage version of DaemonSet.
//
// It holds the types as they go over the wire, their registration and the names of their values. It
// must never hold behaviour: defaults and rules stand in internal/admission, the other version's
// form in internal/conversion.
// +kubebuilder:object:generate=true
// +groupName=apps.kruise.io
package v1beta1

//go:generate ../../../.tools/bin/controller-gen object paths=../...
//go:generate sh -c "../../../.tools/bin/controller-gen crd paths=../... output:stdout | ../../../.tools/bin/crdschema -embedded spec.template -conversion-service daemonset-webhook > ../../config/crd/daemonsets.yaml"
