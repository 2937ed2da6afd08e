// Command simnodes simulates nodes in the cluster of a kubeconfig until it is interrupted:
//
//	simnodes --nodes 50                       nodes of a cluster with a scheduler
//	simnodes --nodes 10 --bind                the same without a scheduler
//	simnodes --crash app:bad --ready-delay 2s containers that fail, or take their time
//	simnodes --bench 5000                     prints the simulation's own ceiling and ends
//
// It must never be used on a cluster whose pods are needed.
package main
