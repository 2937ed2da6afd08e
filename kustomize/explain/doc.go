// Package explain is flotilla explain: why a workload waits, and what would help.
//
// What is known of a workload goes in, findings come out: each rule is a pure function that looks for one cause. The
// command reads the world and prints the findings.
package explain
