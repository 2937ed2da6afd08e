// Package completion tells whether the kubelet and the node agent have carried out what an update in place has written
// on its pod: images, environments, restarts and resources.
//
// The input is the pod and the record, the output is the waits that are left, each with a reason and a message. It
// writes nothing, and it never compares the clocks of two machines.
package completion
