// Package plan has the rules of WorkloadSpread, as pure functions.
//
// For new pods: the spread as stored and a pod go in, the subset comes out and, in the spread's status, the place that
// the pod takes there (Books), or the subset of an ordinal; Inject adds the subset's rules to the pod. For the
// controller: a snapshot goes in, the patches and deletions of pods and the next status come out (Compute).
//
// A place is taken before its pod exists, and is counted until the pod is seen. Every count uses one formula:
//
//	room = limit - replicas - creatingPods + deletingPods, between 0 and the limit
//
// Each writer names the version of the object that it counted from. So no two writers give away the same place.
package plan
