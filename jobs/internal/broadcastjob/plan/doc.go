// Package plan has the rules of BroadcastJob.
//
// A snapshot goes in: a job, its pods, and all nodes with what they are to its template. The pods to make, delete and
// stop come out, and the next status. It is pure: it never reads a clock, calls nobody and changes nothing.
package plan
