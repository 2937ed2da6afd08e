// Package admission holds the defaults and the rules of StatefulSet, written for the hub version.
//
// A StatefulSet, the stored one and the facts that rules need go in, errors with field paths and warnings
// come out: Default, Validate and Warnings are pure. read.go gathers the facts, webhook.go answers the API
// server in the version that the user sent. Nothing here writes to the cluster, and templates are never
// changed.
package admission
