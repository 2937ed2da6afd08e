// Command demo shows what Flotilla is for: on a real cluster that it starts on this machine, pods
// change their image and stay the pods they were.
//
//	demo                          with a CloneSet
//	demo --feature statefulset    with a StatefulSet, from which a pod moves away, too
//
// It leaves the cluster running, for trying things out. It must fail when what it shows is not so.
package main
