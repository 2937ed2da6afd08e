// Package plan has the rules of BroadcastJob.
//
// A snapshot goes in: a job, its pods, and all nodes with the verdict of its template on each. The pods to make, delete
// and stop come out, and the next status. It is pure: it never reads a clock, calls no client and changes nothing.
package plan
