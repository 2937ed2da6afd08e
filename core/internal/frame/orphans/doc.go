// Package orphans finds pods that a workload could own but that its cache does not show as owned: those without a
// controller that its selector matches, and its own that lack the label by which the operator's cache selects pods.
//
// A workload and its cached pods go in, its lost pods come out. Pods with the label are found in the cache, by an
// index. For the others the server is asked to list pods without the label. By default it lists those that the selector
// matches: when the workload is first seen, when its spec changes and every ten minutes. For a workload that has all
// its pods, as after a restart of the operator, the first list can wait, so that an operator does not list for all
// workloads at once.
//
// If something suggests a lost pod, all pods without the label are listed, because a pod may have lost the labels of
// the selector, too; the UID of their controller identifies their owner. A lost pod is suggested when a pod is not in
// the cache any more that was there at the last look and was not being deleted, when the cache shows fewer pods than
// the workload's status when it is first seen, and when the name of a new pod is taken by a pod of the workload that
// the cache does not show. The server is asked before the workload's next plan.
package orphans
