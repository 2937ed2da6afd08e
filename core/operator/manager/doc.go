// Package manager runs an operator as a process.
//
// An Operator has its own parts: name, feature gates, webhooks, controllers. Main and Run add the parts that all
// operators share: flags, logs, feature gates, metrics, probes, certificates, the webhook server, leader election and
// waiting for CRDs. An Operator and the process's arguments and environment go in; an exit code comes out. This package
// knows no feature, and features never read flags or the environment themselves.
//
// Permissions of the operator's role: get, create and update on the Lease <feature>-manager in its own namespace, get
// on the operator's CRDs by name, and the permissions of package certs if there are webhooks.
//
// Only this package and main read the clock, random numbers and the environment.
package manager
