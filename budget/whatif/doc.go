// Package whatif has the PodUnavailableBudgets of a simulated cluster take part in what is played there.
//
// A world of core/simulation with budgets goes in; out come refusals of writes to pods, with the rules, the words and the causes
// that the webhooks of a server have, and for each budget what was left of it:
//
//	budgets := whatif.New()
//	w := nodes.New(cluster.Options{Calm: true, Admission: budgets.Admit}, objects...)
//	budgets.Watch(w.Cluster())
//	err := operator.New(w.Cluster(), planner, operator.Settings{}).Play(1000)
//	for _, s := range budgets.States() { … }
//
// Statuses are counted as the controller counts them, at once where a server takes a moment. They are kept here: the budgets in
// the world stay as they are. Budgets may have any version.
//
// A world differs from a server in a few points. Its budgets cover pods with and without the mark by which a server calls
// webhooks. It evicts no pods, so that no answer has status 429. Namespace kube-system alone is exempt. A kind that Kubernetes
// does not define has a scale subresource if its object has spec.replicas.
//
// The world must have the owners of pods: a kind of which it has no object counts as one that the cluster does not serve. An
// owner or a target of such a kind wants as many pods as it has, unless spec.protectTotalReplicas says another number.
package whatif
