// Package disruption decides about one disruption of a pod: the request, the answer of a budget, and the ledger in the
// status of the budget that records what was granted.
//
// Decide takes a budget with its status and one request, and returns the answer with the status that records a grant. Each
// writer names the version of the status that was read, so that no unit is spent twice. The package has the words of
// budgets, too: what a pod and a workload are for them, and the reasons that users read. It reads no cluster, knows no
// clock, and never changes its arguments.
package disruption
