// Package stops carries out the stops of the node's containers, in parallel to the passes that ask for them.
//
// An order to stop a container goes in: the pod, who asks, the hook and the grace period. Out come how far each stop
// is, by the ID of its container, and calls when its hook and the stop itself have ended. A container has one stop at a
// time. A stop that has not reached the runtime can be given up. A stop outlasts the pass that began it. When the agent
// ends, the stops under way end first.
//
// It decides nothing: controllers decide which container stops, and whether it still does once its hook has ended.
package stops
