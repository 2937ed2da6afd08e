package rehearse

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
)

// Kind is a kind of workload whose edits can be played, for those who play any.
type Kind struct {
	// New returns an empty object in the version that is stored.
	New func() action.Object
	// Planner returns the planner of the set of that name in the world.
	Planner func(w *cluster.World, set types.NamespacedName) operator.Planner
	// Warnings returns the sentences by which the API server answers an edit of a set. Both objects are those of New.
	Warnings func(old, edited action.Object) []string
}
