package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/frame"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/rehearse"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/simulate"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// played is the kind as the operator runs it.
type played = frame.Workload[v1beta1.CloneSet, *v1beta1.CloneSet, Snapshot]

// ofOperator returns it. TestMain sets it, because the package of the operator imports this one.
var ofOperator func(FeatureGates) *played

// SetWorkload sets it.
func SetWorkload(of func(FeatureGates) *played) { ofOperator = of }

// player plays the plans of the CloneSet in a simulated world, as the controller would on a server, and judges every one
// of them.
type player struct {
	*rehearse.Player[v1beta1.CloneSet, *v1beta1.CloneSet, Snapshot]

	world        *simulate.World
	featureGates FeatureGates
}

func newPlayer(w *simulate.World, featureGates FeatureGates) *player {
	p := &player{world: w, featureGates: featureGates}
	p.Player = rehearse.New(w.Cluster(), rehearse.Options[v1beta1.CloneSet, *v1beta1.CloneSet, Snapshot]{
		Set:      types.NamespacedName{Namespace: gen.Namespace, Name: present(w).Name},
		Workload: func() *played { return ofOperator(p.featureGates) },
		Judge: func(seen Snapshot, todo Plan) {
			w.ApplyJudges(todo.Steps, todo.String(), planJudges(seen, todo)...)
		},
	})
	return p
}

// play is a world with a CloneSet, "web" unless an option names it otherwise, of image app:1 and the player of its plans, with every check.
func play(t testing.TB, options cluster.Options, replicas int32, change ...setOption) (*simulate.World, *player) {
	t.Helper()
	w := simulate.New(options, newSet(replicas, change...))
	p := newPlayer(w, FeatureGates{EnvFromMetadata: true, Resize: true})
	watch(w)
	return w, p
}

func newSet(replicas int32, change ...setOption) *v1beta1.CloneSet {
	set := &v1beta1.CloneSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: gen.Namespace, UID: "set-uid"},
		Spec: v1beta1.CloneSetSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: gen.Template(gen.Label("app", "web"), gen.Image("main", "app:1")),
			UpdateStrategy: v1beta1.CloneSetUpdateStrategy{
				Type: v1beta1.RollingUpdate,
				RollingUpdate: &v1beta1.RollingUpdateCloneSetStrategy{
					PodUpdatePolicy: v1beta1.ReCreate, MaxUnavailable: amount("1"),
				},
			},
		},
	}
	for _, c := range change {
		c(set)
	}
	return set
}

// edit changes the set in the way of a user.
func edit(w *simulate.World, change ...setOption) {
	err := cluster.Change(w, cluster.UserActor, "", present(w), func(set *v1beta1.CloneSet) {
		for _, c := range change {
			c(set)
		}
	})
	if err != nil {
		w.Violate("an edit that no server takes: %v", err)
	}
}

func present(w *simulate.World) *v1beta1.CloneSet { return setIn(w.View(nil)) }

func activePods(w *simulate.World) []*corev1.Pod { return w.View(nil).Active("set-uid") }

// named60 gives the set a name so long that the names of its pods are cut, and those of its claims are not.
func named60(s *v1beta1.CloneSet) { s.Name = "web-" + strings.Repeat("x", 56) }

func image(name string) setOption {
	return func(s *v1beta1.CloneSet) { s.Spec.Template.Spec.Containers[0].Image = name }
}

func replicas(n int32) setOption {
	return func(s *v1beta1.CloneSet) { s.Spec.Replicas = &n }
}

func resumed() setOption {
	return rolling(func(r *v1beta1.RollingUpdateCloneSetStrategy) { r.Paused = false })
}

func grace(seconds int32) setOption {
	return rolling(func(r *v1beta1.RollingUpdateCloneSetStrategy) {
		r.InPlaceUpdateStrategy = &workload.InPlaceUpdateStrategy{GracePeriodSeconds: seconds}
	})
}

// hookTaken puts label hook=on into the template, so that new pods have taken the hooks of hooked.
func hookTaken() setOption {
	return func(s *v1beta1.CloneSet) { s.Spec.Template.Labels["hook"] = "on" }
}

// answers lets a user's controller answer the hooks of the set.
func answers(w *simulate.World, after time.Duration) {
	w.AnswerHooks(after, func() *workload.Lifecycle { return present(w).Spec.Lifecycle })
}

// arrived requires that all pods are available and, as far as the partition lets them, at the
// template's revision, and that the status says so.
func arrived(t testing.TB, w *simulate.World) {
	t.Helper()
	if problems := unarrived(w); len(problems) > 0 {
		require.Empty(t, problems, "the story:\n%s", w.Story())
	}
}

// nameOne names the oldest pod in podsToDelete.
func nameOne(w *simulate.World) setOption {
	return func(s *v1beta1.CloneSet) {
		if pods := activePods(w); len(pods) > 0 {
			s.Spec.ScaleStrategy.PodsToDelete = append(s.Spec.ScaleStrategy.PodsToDelete, pods[0].Name)
		}
	}
}
