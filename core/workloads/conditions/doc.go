// Package conditions keeps the conditions in a workload's status.
//
// In addition to conditions of a kind's own it knows the three that kstatus and the tools built on it read: Ready, and
// while they are true Reconciling and Stalled. Lists go in and new lists come out; nothing is changed in place.
package conditions
