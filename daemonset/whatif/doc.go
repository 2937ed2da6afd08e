// Package whatif plays what the DaemonSet operator does to a DaemonSet, in a simulated cluster.
//
// The name of a DaemonSet in a world of core/simulation goes in; a planner comes out, with the description, the reader and the rules
// that run on a server:
//
//	w := nodes.New(cluster.Options{Calm: true}, set)
//	err := operator.New(w.Cluster(), whatif.Planner(w.Cluster(), name), operator.Settings{}).Play(1000)
//
// The world has no webhooks: the DaemonSet must be one that the API server has stored in version v1beta1.
package whatif
