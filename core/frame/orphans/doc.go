// Package orphans finds the pods that a workload could own and does not hold: those without a controller that
// its selector matches, and its own without the label by which the operator's cache selects pods.
//
// A workload and its cached pods go in, its lost pods come out. Those with the label are in the cache, by an index.
// For the others the server is asked, for nothing but pods without the label. Where nothing speaks for a lost pod,
// it is asked for those that the selector matches: when the workload is first met, when its spec changes and every
// ten minutes. A workload that lacks nothing, as after a restart, can wait for its first question, so that an
// operator does not ask for all of them at once.
//
// In doubt it is asked for all pods without the label, because a pod may have lost those of the selector as well,
// and whose they are is told by the UID of their controller. There is doubt when a pod is not in the cache any more
// that was there when its workload was last looked at and that nobody was deleting, when the cache shows fewer pods
// than the workload's status when it is first met, and when the name of a new pod is taken by one of the workload
// that the cache does not show. What is in doubt is known before the workload's next plan.
package orphans
