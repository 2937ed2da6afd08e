// Package admission holds the defaults and the rules of CloneSet, written for the hub version.
//
// A CloneSet, the stored one and the facts that rules need go in, errors with field paths come out:
// Default and Validate are pure. read.go gathers the facts, webhook.go answers the API server in the
// version that the user sent. Nothing here writes to the cluster, and a pod template is never changed.
package admission
