package retries

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/lifecycle"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
)

const (
	// recovery is how long after the end of refusals everything must have been tried again.
	recovery = time.Minute
	// maxOutOfService is how long a pod whose containers are ready may be kept out of service.
	maxOutOfService = 2 * time.Minute
)

// flip is what is known of a pod that left service.
type flip struct {
	out     bool
	refused string         // the kind of request that was refused first since the pod is out, and the answer
	futile  map[string]int // turns in which nothing of the spec was written, by what was refused
}

// follow follows a pod that the operator writes in and out of service.
func (j *Judge) follow(old, pod *corev1.Pod) {
	f := j.flips[pod.UID]
	if f == nil {
		f = &flip{futile: map[string]int{}}
		j.flips[pod.UID] = f
	}
	was := cluster.IsTrue(old, contract.InPlaceUpdateReady)
	is := cluster.IsTrue(pod, contract.InPlaceUpdateReady)
	switch {
	case !cluster.Same(old.Spec, pod.Spec): // whatever happens to it now, it has not left for nothing
		*f = flip{futile: map[string]int{}}
	case was && !is:
		f.out, f.refused = true, ""
	case !was && is && f.out:
		f.out = false
		if f.refused == "" {
			return
		}
		f.futile[f.refused]++ // each kind of request may be refused once in a way in which it was not refused before: a budget refuses no dry run
		if n := f.futile[f.refused]; n > 1 {
			j.world.Violate("quiet under refusal: pod %s left service %d times for nothing: the server refused to %s", pod.Name, n, f.refused)
		}
	}
}

// serve requires that no pod whose containers are ready is kept out of service, unless a hook holds it, the server
// refuses every write that would bring it back, or it has to be adopted first and cannot be, or has to be released.
func (j *Judge) serve(known action.Refusals) {
	for _, r := range j.refused {
		if r.covers("patch status of Pod", j.world.Now().Sub(j.world.Begin())) {
			j.statusRefused = j.world.Now()
			return
		}
	}
	adoption := action.Purpose{Verb: action.Adopt, Kind: "pod", Reason: "SelectorMatch"}
	release := action.Purpose{Verb: action.Release, Kind: "pod", Reason: "SelectorMismatch"}
	claims := action.Purpose{Verb: action.Release, Kind: "claim", Reason: "PodLeaving"} // before the pod
	for _, pod := range j.world.Pods() {
		stays := j.moved[pod.UID] && len(known[adoption].Targets)+len(known[claims].Targets) > 0
		_, goes := known[release].Targets[string(pod.UID)]
		if stays || goes || cluster.ControllerOf(pod) == "" {
			j.foreign[pod.UID] = j.world.Now()
		}
		c := podstate.Condition(pod, contract.InPlaceUpdateReady)
		running := podstate.Condition(pod, corev1.ContainersReady)
		if c == nil || c.Status != corev1.ConditionFalse || pod.DeletionTimestamp != nil || !cluster.IsTrue(pod, corev1.ContainersReady) || j.outTooLong[pod.UID] {
			continue
		}
		since := slices.MaxFunc([]time.Time{c.LastTransitionTime.Time, running.LastTransitionTime.Time, j.statusRefused, j.foreign[pod.UID]}, time.Time.Compare)
		if out := j.world.Now().Sub(since); out > maxOutOfService && lifecycle.State(pod) != contract.LifecyclePreparingDelete {
			j.outTooLong[pod.UID] = true
			j.world.Violate("quiet under refusal: pod %s is kept out of service for %s", pod.Name, out)
		}
	}
}
