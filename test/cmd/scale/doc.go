// Command scale measures an operator under load on a simulated cluster of its own:
//
//	scale                      the CloneSet operator, 1000 pods on 50 nodes, once
//	scale --feature statefulset
//	scale --feature jobs       a BroadcastJob on 1000 nodes, an ImagePullJob on 2000, 1000 crons of one minute
//	scale --feature jobs --pods 5000 --only broadcast,pull
//	                           on 5000 nodes each
//	scale --feature budget --only many
//	                           1000 PodUnavailableBudgets; the same with spread for 1000 WorkloadSpreads
//	scale --pods 5000          more of them
//	scale --foreign 20000      among pods of others
//	scale --restart 1000 --pods 50
//	                           a restart of the operator among 1000 sets of 50 pods
//	scale --rounds 5 --json    for comparing runs
//
// It must leave nothing running.
package main
