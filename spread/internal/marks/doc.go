// Package marks keeps the label on namespaces that have a WorkloadSpread.
//
// The API server calls no webhook for pods of other namespaces, so that an operator that is slow or down concerns none of
// them. The label is there before the first WorkloadSpread of a namespace is: admission sets it (Marker), the controller
// repairs it, and takes it away a while after the last one.
package marks
