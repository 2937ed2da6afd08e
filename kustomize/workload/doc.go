// Package workload reads and edits CloneSets, StatefulSets and DaemonSets of apps.kruise.io as one kind of thing.
//
// One table says where each kind and version keeps what a rollout is told by. What commands know of a workload they know
// from here, so that they say the same of it. Sets are read as they are stored, without the Go types of any feature.
package workload
