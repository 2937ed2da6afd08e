// Package subsets has the rules of WorkloadSpread for one pod, as pure functions: the subset that it takes, the place that
// it takes there, and what the subset adds to it.
//
// The spread as stored and a pod go in, the subset comes out and, in the spread's status, the place that the pod takes
// there (Books), or the subset of an ordinal. Inject adds the subset's rules to the pod.
//
// A place is taken before its pod exists, and is counted until the pod is seen. Every count uses one formula:
//
//	room = limit - replicas - creatingPods + deletingPods, between 0 and the limit
//
// Each writer names the version of the object that it counted from. So no two writers give away the same place.
package subsets
