// Package simulate plays the other programs of a node for tests of the agent.
//
// Runtime is a container runtime that answers CRI v1 on a real unix socket. A test sets the images of its registry,
// which pods run, and where calls are slow, fail or lose their connection; it can stop the runtime and
// start it again. Kubelet starts ended containers again and reports pods to an API server.
//
// Only tests may import it.
package simulate
