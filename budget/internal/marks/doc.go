// Package marks keeps the marks by which webhooks find what budgets concern on the pods that a budget covers: annotations.
// Namespaces have a label, which core keeps.
//
// The API server calls no webhook for what has no mark, so that an operator that is down concerns nobody else. Marks
// decide nothing: which budgets cover a pod follows from the budgets.
package marks
