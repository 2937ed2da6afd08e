// Package managers runs the managers of features as processes on this machine, against the control plane of a local
// cluster. A manager has the account, the roles and the webhooks of its shipped manifests.
package managers
