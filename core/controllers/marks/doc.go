// Package marks keeps a label on namespaces that have objects of a kind.
//
// The API server calls no webhook for pods of other namespaces, so that an operator that is slow or down concerns none of
// them. The controller gives and takes the label; where the first object must find it in place, admission sets it before
// (Marker) and notes when, so that no other replica takes it away from an object that is about to be stored. The label
// decides nothing: the object itself defines the pods that it covers.
package marks
