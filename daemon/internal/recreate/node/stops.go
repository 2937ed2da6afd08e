package node

import (
	"maps"
	"slices"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

// NeedsPodGone reports whether PodGone has to be known: a stop is about to reach the runtime, or its request has ended and that
// may have been why. A stop without a request is given up either way.
func NeedsPodGone(s Snapshot) bool {
	for _, stop := range s.Stops {
		r := s.requestOf(stop)
		if r != nil && (stop.Stage == AfterHook || stop.Stage == InHook && r.Status.Phase == v1beta1.RecreateCompleted) {
			return true
		}
	}
	return false
}

// stands reports whether a request is for this pod and is not being deleted.
func (s *Snapshot) stands(r *v1beta1.ContainerRecreateRequest) bool {
	return s.PodUID != "" && r.Labels[v1beta1.PodUIDLabel] == string(s.PodUID) && r.DeletionTimestamp == nil
}

// requestOf returns the request that asked for a stop, nil when it is gone or going.
func (s *Snapshot) requestOf(stop Stop) *v1beta1.ContainerRecreateRequest {
	for _, r := range s.Requests {
		if r.UID == stop.Request && s.stands(r) {
			return r
		}
	}
	return nil
}

// running reports whether the runtime has the container of the ID and it runs.
func (s *Snapshot) running(id string) bool {
	return slices.ContainsFunc(s.Containers, func(c Container) bool { return c.ID == id && c.Running })
}

// abandoned returns the stops that have not reached the runtime and that are given up. Their request or pod is gone, or the
// container has ended and the request shows it. While the request shows the hook, it may have been completed in between,
// and the result of the stop must still be written.
func abandoned(s Snapshot) []string {
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(s.Stops)) {
		stop := s.Stops[id]
		if stop.Stage != InHook && stop.Stage != AfterHook {
			continue
		}
		r := s.requestOf(stop)
		at := recordOf(r, id)
		owed := at >= 0 && inHook(r.Status.ContainerRecreateStates[at])
		if r == nil || s.PodGone || !s.running(id) && !owed {
			ids = append(ids, id)
		}
	}
	return ids
}

// carryThrough ends the stops that had begun when their request was completed: a run with a hook that is over is stopped,
// and the request shows it.
func carryThrough(s Snapshot, plan *Plan) {
	for _, id := range slices.Sorted(maps.Keys(s.Stops)) {
		stop := s.Stops[id]
		r := s.requestOf(stop)
		if stop.Stage != AfterHook || r == nil || r.Status.Phase != v1beta1.RecreateCompleted || slices.Contains(plan.Abort, id) {
			continue
		}
		states := slices.Clone(r.Status.ContainerRecreateStates)
		i := recordOf(r, id)
		if i < 0 {
			continue
		}
		mark(&states[i], id)
		plan.write(r, map[string]any{"containerRecreateStates": states})
		plan.RequeueWithin(lookAgain) // the cache may not show it
		named := func(c v1beta1.ContainerToRecreate) bool { return c.Name == states[i].Name }
		if at := slices.IndexFunc(r.Spec.Containers, named); at >= 0 && s.running(id) {
			plan.Kill = killOf(r, &r.Spec.Containers[at], id)
		}
	}
}

// recordOf returns the index of the state that marks the run, -1 when there is none or no request.
func recordOf(r *v1beta1.ContainerRecreateRequest, id string) int {
	if r == nil {
		return -1
	}
	return slices.IndexFunc(r.Status.ContainerRecreateStates, func(s v1beta1.ContainerRecreateState) bool { return s.ContainerID == id })
}
