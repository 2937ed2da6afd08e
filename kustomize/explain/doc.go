// Package explain is flotilla explain: why a workload waits, and how to help it.
//
// The facts about a workload go in, findings come out: each rule is a pure function that looks for one cause. The command
// reads the world and prints the findings.
package explain
