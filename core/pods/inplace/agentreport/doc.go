// Package agentreport is the node agent's report of the containers of a pod: annotation
// apps.kruise.io/runtime-containers-meta, with hashes of the spec and the environment that each container was started
// with. The agent writes it, and operators compare it with the present spec and metadata of the pod. The package knows
// no update.
package agentreport
