// Package agents plays the node agents of simulated nodes, which have no containers: it answers the objects that the manager of
// the feature daemon and users write for them.
package agents
