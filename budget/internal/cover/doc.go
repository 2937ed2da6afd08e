// Package cover finds the pods that a budget covers, the budgets that cover a pod, and the workloads that the pods
// belong to.
//
// Everything is read from caches, through an index of owners and one of labels, so that the cost follows the pods of the
// one budget. It never writes.
package cover
