// Package operators runs whole operators against the control plane of a test.
//
// An operator is started as its command starts it, but without webhooks: the API server could not reach them by the
// names in its manifests.
package operators
