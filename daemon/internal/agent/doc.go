// Package agent is the process on each node that does what the kubelet cannot do.
//
// Options and a way to reach the API server go in. Pulls of images, restarts of containers and the metadata
// of containers are the business of packages below; here they are started, and what they share is made: the
// caches that hold only what concerns this node, the container runtimes, events, metrics and probes.
//
// It writes nothing but the status of its node's own objects and events. What is missing (a container runtime,
// a definition) makes it not ready and says so; it never ends the process.
package agent
