// Package workload reads and edits CloneSets, StatefulSets and DaemonSets of apps.kruise.io as one kind of thing.
//
// One table shows where each kind and version keeps the fields that show its rollout. Commands take all facts about a
// workload from here, so that they report the same. Sets are read as they are stored, without the Go types of any feature.
package workload
