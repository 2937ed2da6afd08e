// Package ledger records granted disruptions in the statuses of budgets, before they are carried out.
//
// Requests about one budget that arrive while it is being written share the next write. A write names the version that
// its decisions were made from, so that any number of processes can grant at the same time; after a conflict all of its
// requests are decided again. Nothing that is only in memory makes a grant.
package ledger
