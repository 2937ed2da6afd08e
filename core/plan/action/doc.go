// Package action is the closed set of the actions of a plan: create, delete, patch and wait.
//
// A plan is a value. It lists the writes, their order, and their reasons; package execute writes it and package
// simulate plays it, both in the way of package progress, and tests, logs and people read its text. Nothing here reads
// or writes a cluster.
package action
