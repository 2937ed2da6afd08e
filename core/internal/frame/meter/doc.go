// Package meter counts the work of the controller of a kind of workload, for Prometheus: how long its plans take, how
// pods change their revision, how long new ones take to become ready, and, of each workload, how many pods are
// unavailable and in trouble and the reason why it waits.
//
// Values of labels come from closed sets, but for the namespace and the name of a workload: the series of a workload
// end with it. docs/reference/metrics.md names all of them.
package meter
