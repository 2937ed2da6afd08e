// Package action is the closed set of the actions of a plan: create, delete and patch.
//
// A plan is a value. It lists the writes, their order, and their reasons. Rules add to it, and ask what of it may be
// tried; Admit leaves out what the server has refused a short time ago. Then package execute writes the plan and package
// simulate plays it, both in the way of package progress, and tests, logs and people read its text. Nothing here reads
// or writes a cluster.
package action
