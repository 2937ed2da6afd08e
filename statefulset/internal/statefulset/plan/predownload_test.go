package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/simulate"
	"github.com/flotilla-project/flotilla/core/workloads/predownload"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// pulling is a set of five old pods whose images can be pulled ahead.
func pulling(t *testing.T, options ...setOption) *world {
	t.Helper()
	w := given(t, 5, append([]setOption{policy(v1beta1.InPlaceIfPossible)}, options...)...)
	w.featureGates.PreDownload = true
	w.pulls.Version = "v1beta1"
	return w.old(span(0, 4))
}

func annotated(key, value string) setOption {
	return func(s *v1beta1.StatefulSet) {
		if s.Annotations == nil {
			s.Annotations = map[string]string{}
		}
		s.Annotations[key] = value
	}
}

func TestImagesArePulledAheadWhereThatGainsSomething(t *testing.T) {
	rows := []struct {
		name  string
		world *world
		jobs  int
	}{
		{"in place", pulling(t), 1},
		{"partition 0 and all at once", pulling(t, maxUnavailable("5")), 0},
		{"all at once above a partition", pulling(t, maxUnavailable("5"), partition(1)), 1},
		{"recreated", pulling(t, policy(v1beta1.ReCreate)), 0},
		{"three replicas", pulling(t, replicas(3)), 0},
		{"OnDelete", pulling(t, onDeleteOnly()), 0},
		{"not in place", pulling(t).edited(func(s *v1beta1.StatefulSet) { s.Spec.Template.Spec.NodeName = "x" }).changed(), 0},
		{"too few updated pods are ready", pulling(t, annotated(contract.ImagePreDownloadMinUpdatedReadyPodsAnnotation, "1")), 0},
		{"a percentage is rounded up", pulling(t, annotated(contract.ImagePreDownloadMinUpdatedReadyPodsAnnotation, "1%")), 0},
		{"nonsense is 0", pulling(t, annotated(contract.ImagePreDownloadMinUpdatedReadyPodsAnnotation, "some")), 1},
		{"without the feature gate", pulling(t).withFeatureGates(func(g *FeatureGates) { g.PreDownload = false }), 0},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			todo := r.world.plan()
			aside := action.Plan{Steps: todo.PreDownload.Steps}
			assert.Equal(t, r.jobs, aside.Count(action.Create), "%s", todo.String())
		})
	}
}

// Without the kind the set is updated all the same, and who counts on it is told.
func TestWithoutImagePullJobsTheUserIsTold(t *testing.T) {
	w := pulling(t, annotated(contract.ImagePreDownloadParallelismAnnotation, "2"))
	w.pulls.Version = ""
	todo := w.plan()
	assert.Equal(t, []string{"update 4"}, w.did())
	found := false
	for _, n := range todo.Notices {
		found = found || n.Reason == predownload.EventUnavailable
	}
	assert.True(t, found)
}

// A canary waits while jobs fail on nodes and pods come to others: in the end all nodes of older pods have the image.
func TestNodesThatFailedOrCamePullAgain(t *testing.T) {
	var pulls *simulate.ImagePulls
	worlds, jobs := 0, 0
	simulate.Explore(t, 16, func(seed uint64) (*simulate.World, operator.Planner, simulate.Faults) {
		w := simulate.New(cluster.Options{Seed: seed, Nodes: 8}, newSet(5, policy(v1beta1.InPlaceIfPossible), partition(3)))
		pulls = w.PullImages(func(node string, tries int) bool { return node == "node-1" && tries < 3 })
		minutely(wants("app:2"))(w)
		f := simulate.AllFaults(seed)
		f.Foreign, f.Actors = 0.2, []simulate.Actor{simulate.EvictsPods}
		return w, newPlayer(w, FeatureGates{PreDownload: true}), f
	}, func(t testing.TB, w *simulate.World) {
		t.Helper()
		assert.Empty(t, pulls.Lacking("app:2", contract.RevisionLabel, present(w).Status.UpdateRevision), "the story:\n%s", w.Story())
		worlds, jobs = worlds+1, jobs+pulls.Jobs
	})
	if worlds > 1 { // one that is played alone may need no second job
		assert.Greater(t, jobs, worlds, "no world made a job again")
	}
}
