// Package v1beta1 holds the hub and storage version of CloneSet.
//
// It has the types, their registration and the names of their values, and no behaviour: defaults and validation are in
// internal/admission, conversion from and to the other version in internal/conversion.
// +kubebuilder:object:generate=true
// +groupName=apps.kruise.io
package v1beta1

//go:generate ../../../.tools/bin/controller-gen object paths=../...
//go:generate sh -c "../../../.tools/bin/controller-gen crd paths=../... output:stdout | ../../../.tools/bin/crdschema -embedded spec.template -embedded spec.volumeClaimTemplates -conversion-service cloneset-webhook > ../../config/crd/clonesets.yaml"
