// Package plan decides about PodUnavailableBudgets: it computes a budget's numbers, and whether a disruption is granted.
//
// Compute takes the state that the controller has read of one budget and returns its next status. Decide takes the status
// and one request, and returns the answer with the status that records a grant. The status is the ledger of both: each
// writer names the version that was read, so that no unit is spent twice. The package reads no cluster, knows no clock, and
// never changes its arguments.
package plan
