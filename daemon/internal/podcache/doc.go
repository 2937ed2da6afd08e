// Package podcache says what the manager keeps in memory of the cluster's pods: any pod may be asked to
// recreate a container or to start its containers in order, and most never are.
//
// It is a transform of the cache and holds no state. Pods that only requests concern are read from the server.
// It must never keep what no plan of package launch reads.
package podcache
