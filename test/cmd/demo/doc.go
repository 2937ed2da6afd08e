// Command demo shows what Flotilla is for: on a real cluster that it starts on this machine, pods
// change their image and stay the pods they were.
//
// It leaves the cluster running, for trying things out. It must fail when what it shows is not so.
package main
