// Package ledger records granted disruptions in the statuses of budgets, before they are carried out. How a status is shared
// is core/controllers/ledger's.
package ledger
