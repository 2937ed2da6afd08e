// Package podunavailablebudget counts for PodUnavailableBudgets: it keeps their numbers, and ends grants that were carried
// out or that no client carries out.
//
// Only the leader counts. It never refuses anything, and it writes nothing but statuses: grants are recorded by the
// webhooks of all replicas, and marks on pods and namespaces by package marks.
package podunavailablebudget
