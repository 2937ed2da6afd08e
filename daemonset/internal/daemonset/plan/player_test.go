package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/frame"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/rehearse"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/simulate"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

// played is the kind as the operator runs it.
type played = frame.Workload[v1beta1.DaemonSet, *v1beta1.DaemonSet, Snapshot]

// ofOperator returns it. TestMain sets it, because the package of the operator imports this one.
var ofOperator func(FeatureGates) *played

// SetWorkload sets it.
func SetWorkload(of func(FeatureGates) *played) { ofOperator = of }

// player plays the plans of DaemonSet "web" in a simulated world, as the controller would on a server, and judges every one
// of them.
type player struct {
	*rehearse.Player[v1beta1.DaemonSet, *v1beta1.DaemonSet, Snapshot]

	world        *simulate.World
	featureGates FeatureGates
}

func newPlayer(w *simulate.World, featureGates FeatureGates) *player {
	p := &player{world: w, featureGates: featureGates}
	p.Player = rehearse.New(w.Cluster(), rehearse.Options[v1beta1.DaemonSet, *v1beta1.DaemonSet, Snapshot]{
		Set:      types.NamespacedName{Namespace: gen.Namespace, Name: "web"},
		Workload: func() *played { return ofOperator(p.featureGates) },
		Judge: func(seen Snapshot, todo Plan) {
			w.ApplyJudges(todo.Steps, todo.String(), planJudges(seen, todo)...)
		},
	})
	return p
}

// play is a world of so many nodes with DaemonSet "web" of image app:1 and the player of its plans, with every check.
func play(t testing.TB, options cluster.Options, nodes int, change ...setOption) (*simulate.World, *player) {
	t.Helper()
	set := newSet(change...)
	set.Generation = 1
	options.Nodes = nodes
	w := simulate.New(options, set)
	w.AddNodes(nodes)
	p := newPlayer(w, FeatureGates{EnvFromMetadata: true, Resize: true})
	watch(w)
	return w, p
}

// edit changes the set in the way of a user.
func edit(w *simulate.World, change ...setOption) {
	err := cluster.Change(w, cluster.UserActor, "", newSet(), func(set *v1beta1.DaemonSet) {
		for _, c := range change {
			c(set)
		}
	})
	if err != nil {
		w.Violate("an edit that no server takes: %v", err)
	}
}

func setIn(v *cluster.View) *v1beta1.DaemonSet {
	return cluster.Get[*v1beta1.DaemonSet](v, gen.Namespace, "web")
}

func present(w *simulate.World) *v1beta1.DaemonSet { return setIn(w.View(nil)) }

// answers lets a user's controller answer the hooks of the set, each some time after it was asked.
func answers(w *simulate.World, after time.Duration) {
	w.AnswerHooks(after, func() *workload.Lifecycle { return present(w).Spec.Lifecycle })
}

// arrived requires that every node that should run a pod has one, available and, as far as partition and selector let
// it, at the template's revision; that no other has one; and that the status says so.
func arrived(t testing.TB, w *simulate.World) {
	t.Helper()
	if problems := unarrived(w); len(problems) > 0 {
		require.Empty(t, problems, "the story:\n%s", w.Story())
	}
}
