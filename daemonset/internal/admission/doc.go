// Package admission holds the defaults and the rules of DaemonSet, written for the hub version.
//
// A DaemonSet, the stored one and the facts that rules need go in, errors with field paths and warnings come out:
// Default, Validate and Warnings are pure. webhook.go gathers the facts and answers the API server in the version that
// the user sent. Nothing here writes to the cluster, and templates are never changed.
package admission
