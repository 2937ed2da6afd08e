// Package workload has the struct types that several kinds of workloads share.
//
// It has types only, no behaviour.
// +kubebuilder:object:generate=true
package workload

//go:generate ../../../.tools/bin/controller-gen object paths=.
