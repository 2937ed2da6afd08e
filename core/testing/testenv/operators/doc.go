// Package operators runs whole operators against the control plane of a test.
//
// An operator goes in as its command has it, without webhooks: no API server could reach them under the names in its
// manifests.
package operators
