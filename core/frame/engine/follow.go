package engine

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/controllers/execute"
	"github.com/flotilla-project/flotilla/core/plan/action"
)

// follow tells the finder of lost pods what a pass has done to pods and what was in its way. A name that is taken by a
// pod of the workload itself is taken by one that the cache does not show, and so may be one whose creation has failed.
func (e *Engine) follow(workload types.NamespacedName, results []execute.Result) {
	for i := range results {
		r := &results[i]
		_, isPod := r.Action.Object.(*corev1.Pod)
		done, verb, name := r.State == execute.Done, r.Action.Verb, r.Action.Object.GetName()
		switch {
		case errors.Is(r.Err, execute.ErrTaken), errors.Is(r.Err, execute.ErrMounted):
			e.Orphans.Taken(workload, name, e.Clock.Now())
		case !isPod:
		case verb == action.Create && done:
			e.Orphans.Created(workload, r.Object)
		case verb == action.Create && (r.State == execute.Failed || apierrors.IsAlreadyExists(r.Err)):
			e.Orphans.Doubt(workload)
		case done && (verb == action.Delete || verb == action.Release):
			e.Orphans.Left(workload, r.Action.Object.GetUID())
		}
	}
}
