// Package broadcastjob is the controller of BroadcastJob. It runs a pod to its end on every node that fits.
//
// No rule stands here; all of them are in packages plan, admission and core/pods/eligibility.
package broadcastjob
