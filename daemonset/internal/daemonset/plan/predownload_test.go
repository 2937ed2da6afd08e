package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/judges"
	"github.com/flotilla-project/flotilla/core/testing/simulate"
)

// Few nodes are updated one after the other, too: pulling ahead saves the time of a pull on each.
func TestImagesArePulledAheadOnFewNodes(t *testing.T) {
	creates := func(w *world) (names []string) {
		w.featureGates.PreDownload, w.pulls.Version = true, "v1beta1"
		for a := range judges.Actions(w.plan().PreDownload.Steps, "") {
			if a.Verb == action.Create {
				names = append(names, a.Object.GetName())
			}
		}
		return names
	}
	w := given(t, 2).old("n1 n2")
	assert.Equal(t, []string{w.revisions[1].Name + "-main"}, creates(w))
	assert.Empty(t, creates(given(t, 1).old("n1")), "all nodes at once")
	assert.Empty(t, creates(given(t, 2, deleting).old("n1 n2")), "users decide when")
	assert.Empty(t, creates(given(t, 2).updated("n1 n2")))
}

// A canary waits while jobs fail on a node: in the end all nodes of older pods have the image.
func TestNodesThatFailedPullAgain(t *testing.T) {
	var pulls *simulate.ImagePulls
	worlds, jobs := 0, 0
	simulate.Explore(t, 8, func(seed uint64) (*simulate.World, operator.Planner, simulate.Faults) {
		w, p := play(t, cluster.Options{Seed: seed}, 5, partition("3"))
		p.featureGates.PreDownload = true
		pulls = w.PullImages(func(node string, tries int) bool { return node == "node-1" && tries < 3 })
		minutely(wants("app:2"))(w)
		f := simulate.AllFaults(seed)
		f.Foreign, f.Actors = 0.2, nodeActors()
		return w, p, f
	}, func(t testing.TB, w *simulate.World) {
		t.Helper()
		update := present(w).Status.UpdateRevision
		assert.Empty(t, pulls.Lacking("app:2", contract.RevisionLabel, update), "the story:\n%s", w.Story())
		worlds, jobs = worlds+1, jobs+pulls.Jobs
	})
	if worlds > 1 { // one that is played alone may need no second job
		assert.Greater(t, jobs, worlds, "no world made a job again")
	}
}
