// Package simnodes simulates nodes against a real API server: it registers Node objects and does
// to the pods assigned to them what a kubelet would, without running anything.
//
// A rest.Config and Options go in; pods come to life, restart when an image changes, take new
// resources, end when they are deleted. One watch serves all nodes, one queue collects the changes
// of a pod, a pool of workers writes them, so that the API server is the limit and not the
// simulation. A pod that nothing delays is ready with one write, a few milliseconds after it was
// assigned.
//
// The package has three layers. A container and a podRun know nothing of the API: a pod and a
// moment go in, a PodStatus and the time of the next change come out. Nodes watches, queues and
// writes. A binder, where asked for, stands in for the scheduler.
//
// It is of layer testing: only tests, benchmarks and the local cluster may import it. It must never
// write anything but the status and the end of pods on its own nodes, those nodes and their
// leases, and the binding of pods where Options.Bind asks for it.
package simnodes
