package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"

	daemon "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

// Node is the kind of node that a pod runs on.
type Node int

// Kinds of nodes.
const (
	// NodeUnknown is a node that is not known, or not yet.
	NodeUnknown Node = iota
	// NodeReal is a node with a kubelet and room for the node agent.
	NodeReal
	// NodeVirtual is a node of a provider, where no agent runs.
	NodeVirtual
)

// Snapshot is the input of the plan for one pod, read-only.
type Snapshot struct {
	// Pod is the pod.
	Pod *corev1.Pod
	// Node is the kind of its node.
	Node Node
	// Served reports whether the cluster serves ContainerRecreateRequest and the operator may make some.
	Served bool
	// Requests are those that the pod owns.
	Requests []*daemon.ContainerRecreateRequest
	// Refusals are the writes that the server has refused before.
	Refusals action.Refusals
	// Now is the moment of the pass.
	Now time.Time
}
