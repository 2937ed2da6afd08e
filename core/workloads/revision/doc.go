// Package revision keeps the history of pod templates as ControllerRevisions.
//
// A workload's template and the revisions it owns go in; which revision the template is, whether one
// must be created or raised, and which may be deleted come out. Nothing is written here. The objects
// equal those that OpenKruise wrote, in name, hash, labels and data, and two templates are the same
// when they mean the same: taking over a running workload must never start a rollout.
package revision
