// Package marks keeps the marks on the pods that a budget covers: annotations by which webhooks find these pods. Namespaces
// have a label, which core keeps.
//
// The API server calls no webhook for objects without a mark, so that an operator that is down affects no other objects.
// Marks decide nothing: which budgets cover a pod follows from the budgets.
package marks
