// Package v1beta1 holds the one version of Beacon.
// +kubebuilder:object:generate=true
// +groupName=apps.kruise.io
package v1beta1

//go:generate ../../../.tools/bin/controller-gen object paths=../...
//go:generate sh -c "../../../.tools/bin/controller-gen crd paths=../... output:stdout | ../../../.tools/bin/crdschema -embedded spec.template > ../../config/crd/beacons.yaml"
