// Package containerrestart carries out ContainerRecreateRequests on the node.
//
// Requests for pods of the node and the containers in the runtime go in; containers are stopped and the requests'
// status reports their states. Every rule is in package recreate/node; this package provides the input of the rules: the
// containers of the runtime, and the stops under way, which last longer than the pass that began them.
//
// It writes the members of status that are the agent's, on top of the version that the write was made from. It stops
// only containers of the very pod that a request names, by UID.
package containerrestart
