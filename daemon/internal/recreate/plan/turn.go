package plan

import (
	"cmp"
	"slices"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

// First returns the request whose turn it is among all requests for one pod: one that the agent has begun, then the
// oldest. It returns nil if none is open.
func First(all []*v1beta1.ContainerRecreateRequest) *v1beta1.ContainerRecreateRequest {
	open := slices.DeleteFunc(slices.Clone(all), func(r *v1beta1.ContainerRecreateRequest) bool { return !Open(r) })
	if len(open) == 0 {
		return nil
	}
	return slices.MinFunc(open, func(a, b *v1beta1.ContainerRecreateRequest) int {
		return cmp.Or(
			cmp.Compare(begun(b), begun(a)),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.Name, b.Name),
		)
	})
}

// Waits reports whether a request only waits for its turn among all requests for its pod. Its pod does not matter until
// then: what ends the pod ends the request before it, and so brings its turn.
func Waits(r *v1beta1.ContainerRecreateRequest, all []*v1beta1.ContainerRecreateRequest) bool {
	if !Open(r) || hasFinalizer(r) || begun(r) > 0 {
		return false
	}
	first := First(all)
	return first != nil && first.UID != r.UID
}

// begun is 1 for a request that the agent works on, and 0 for others.
func begun(r *v1beta1.ContainerRecreateRequest) int {
	if r.Status.Phase == v1beta1.RecreateRecreating {
		return 1
	}
	return 0
}
