// Package diff compares the pod templates of two revisions: may a running pod of the one become a pod of the other, and
// which fields change. The input is templates alone, the output a Scope or a NotPossibleError with the field that is in
// the way. It knows no pod and no record of an update.
package diff
