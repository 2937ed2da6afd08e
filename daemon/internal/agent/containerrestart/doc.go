// Package containerrestart carries out ContainerRecreateRequests on the node.
//
// Requests for pods of the node and the containers in the runtime go in; containers are stopped and the states in the
// requests' status tell. Every rule is in package recreate/node; here is what it needs: one pod at a time per worker,
// what the runtime has, and the stops under way, which outlast the pass that began them.
//
// It writes the members of status that are the agent's, on top of the version that the write was made from. It stops
// only containers of the very pod that a request names, by UID.
package containerrestart
