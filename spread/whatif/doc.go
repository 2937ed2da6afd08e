// Package whatif has the WorkloadSpreads of a simulated cluster take part in a simulation.
//
// A world of core/simulation with spreads goes in; new pods come out with the rules of their subsets, running pods with their
// deletion costs, and for each spread how many pods each of its subsets has:
//
//	spreads := whatif.New()
//	w := nodes.New(cluster.Options{Calm: true, Mutate: spreads.Mutate}, objects...)
//	spreads.Watch(w.Cluster())
//	err := operator.New(w.Cluster(), planner, operator.Settings{}).Play(1000)
//	for _, s := range spreads.States() { … }
//
// The operator's webhook and controller run here: places, limits, patches, costs, adoption, and the deletion of pods that stay
// unschedulable. A pass follows an event after a moment, as on a server, and writes as Actor. Spreads keeps the statuses: the
// spreads in the world stay as they are. Spreads may have any version.
//
// A world differs from a server in a few points. A pod frees its place when it begins to terminate, and a server notes the
// deletion a moment before. Pods get their subsets in namespaces with and without the mark by which a server calls webhooks;
// namespace kube-system alone is exempt. A custom kind has a scale subresource if its object has spec.replicas. Spreads
// themselves pass every admission: an invalid one counts as it is.
//
// The world must have the workloads that spreads target, and all spreads that pods name: a pass releases the pods of a spread
// that is gone. Running pods get a subset if the world has their nodes as objects.
package whatif
