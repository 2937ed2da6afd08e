// Package plan computes the numbers of PodUnavailableBudgets.
//
// Compute takes the state that the controller has read of one budget and returns its next status. The status is also the
// ledger of package disruption. The package reads no cluster, knows no clock, and never changes its arguments.
package plan
