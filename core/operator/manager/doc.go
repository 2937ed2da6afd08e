// Package manager is the one way to start an operator.
//
// An Operator says what is its own: its name, its gates, its webhooks, its controllers. Main and Run add what
// all operators share: flags, logs, gates, metrics, probes, certificates, the webhook server, leader election
// and the wait for its CRDs. In go an Operator and the process's arguments and environment; out comes an exit
// code. It must never know a feature, and features never read flags or the environment themselves.
//
// Its role in a cluster: get, create and update on the Lease <feature>-manager in its own namespace, get on the
// operator's CRDs by name, and what package certs needs if there are webhooks.
//
// This package and main are the only places that read the clock, random numbers and the environment.
package manager
