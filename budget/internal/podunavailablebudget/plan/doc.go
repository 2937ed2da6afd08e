// Package plan decides about PodUnavailableBudgets: what a budget's numbers are, and whether a disruption is granted.
//
// Compute takes what the controller has read of one budget and returns its next status. Decide takes the status and one
// request, and returns the answer with the status that records a grant. The status is the ledger of both: whoever
// writes it names the version that was read, so that no unit is spent twice. The package reads no cluster, knows no
// clock, and never changes what it is given.
package plan
