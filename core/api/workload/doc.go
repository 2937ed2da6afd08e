// Package workload holds the struct types that the specifications of several workload kinds embed.
//
// The JSON names are those of the published API. It holds types only, no behaviour.
// +kubebuilder:object:generate=true
package workload

//go:generate ../../../.tools/bin/controller-gen object paths=.
