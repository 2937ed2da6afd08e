// Package admission has the rules for new ContainerRecreateRequests, and for the values that the webhook fills into them,
// written for the hub version.
//
// A request, its pod and the pod's node go in; the same request with its pod's UID, the IDs of the containers and their
// hooks, or errors with field paths, come out: Fill, Validate and Warnings are pure. webhook.go reads the pod and
// answers the API server in the version that the user sent.
package admission
