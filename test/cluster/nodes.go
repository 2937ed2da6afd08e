package cluster

import (
	"context"
	"fmt"
	"time"
)

// Node is one real node of a cluster.
type Node struct {
	cluster *Cluster
	machine machine
}

// Nodes returns all real nodes, in order; none in a simulated cluster.
func (c *Cluster) Nodes() []Node {
	var nodes []Node
	for _, m := range c.state.Machines[1:] {
		nodes = append(nodes, Node{cluster: c, machine: m})
	}
	return nodes
}

// Node returns the i-th real node, from 0. It panics if there is none.
func (c *Cluster) Node(i int) Node { return c.Nodes()[i] }

// NodeNamed finds a real node by its name.
func (c *Cluster) NodeNamed(name string) (Node, error) {
	m, err := c.state.node(name)
	return Node{cluster: c, machine: m}, err
}

// Name returns the name of the Node object and the host name, such as n0.
func (n Node) Name() string { return n.machine.Name }

// Address returns the node's IP address, reachable from pods and through DialContext.
func (n Node) Address() string { return nodeAddress(n.machine.Index) }

// Stop crashes the node: all its processes are killed at once, pods included.
func (n Node) Stop(ctx context.Context) error {
	return n.cluster.control(ctx, "POST", "/nodes/"+n.Name()+"/stop", nil)
}

// Start boots the node after Stop, and returns when it is ready. Its files are unchanged, and its pods start again some
// time later.
func (n Node) Start(ctx context.Context) error {
	booted := time.Now()
	if err := n.cluster.control(ctx, "POST", "/nodes/"+n.Name()+"/start", nil); err != nil {
		return fmt.Errorf("boot node %s: %w", n.Name(), err)
	}
	ctx, cancel := context.WithTimeout(ctx, defaultTimeout)
	defer cancel()
	return n.cluster.await(ctx, step{"node " + n.Name(), func(ctx context.Context) error {
		return n.ready(ctx, booted)
	}})
}
