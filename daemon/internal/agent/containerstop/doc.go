// Package containerstop ends containers as the kubelet does: the hook first, then the signal.
//
// The ID of a container, its hook and the time for both go in; the container ends, and its pod shows events.
// The kubelet starts it again by its own rules. Which container is to end, and when, is decided elsewhere: this
// package stops the container with the given ID, and no other one of the same name.
package containerstop
