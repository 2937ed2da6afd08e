// Package openkruise finds out whether OpenKruise answers for budgets in the same cluster, and warns users.
package openkruise
