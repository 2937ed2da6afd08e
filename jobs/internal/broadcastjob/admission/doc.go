// Package admission has the defaults and the validation of BroadcastJobs. All but the webhook, which asks the cluster
// about pod templates, is pure.
package admission
