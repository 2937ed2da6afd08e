// Package agent is the process on each node that does the work that the kubelet cannot do.
//
// Options and a way to reach the API server go in. Pulls of images, restarts of containers and the metadata
// of containers are the business of packages below. This package starts them and makes the parts that they share: the
// caches that hold only objects of this node, the container runtimes, events, metrics and probes.
//
// It writes nothing but the status of its node's own objects and events. A missing container runtime or definition
// makes it not ready, and the probe reports the reason; it never ends the process.
package agent
