package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/scenarios"
	"github.com/flotilla-project/flotilla/core/testing/simulate"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// puller plays plans together with what they want aside, in a world that serves ImagePullJob.
type puller struct {
	*player

	made map[string]int // how often a job of the name was created
	left map[string]bool
}

// givenPuller has a set of four pods whose image changes twice.
func givenPuller(seed uint64) (*simulate.World, *puller) {
	w := simulate.New(cluster.Options{Seed: seed}, newSet(4, policy(v1beta1.InPlaceIfPossible)))
	p := &puller{player: newPlayer(w, FeatureGates{PreDownload: true}), made: map[string]int{}, left: map[string]bool{}}
	w.OnEvent(func(_ *simulate.World, e cluster.Event) {
		if e.Kind != contract.ImagePullJobKind {
			return
		}
		p.left[e.Object.GetName()] = e.Type != cluster.Deleted
		if e.Type == cluster.Added {
			p.made[e.Object.GetName()]++
		}
	})
	minutely(wants("app:2"), wants("app:3"))(w)
	for tick := range 30 { // lets passes happen between the edits
		w.After(time.Duration(tick)*5*time.Second, func() {})
	}
	return w, p
}

// No revision got its job twice, no job is left, and so many revisions are marked as decided.
func (p *puller) pulledOnce(t testing.TB, revisions int) {
	t.Helper()
	assert.GreaterOrEqual(t, len(p.made), revisions)
	for name, n := range p.made {
		assert.Equal(t, 1, n, name)
		assert.False(t, p.left[name], "%s, the story:\n%s", name, p.world.Story())
	}
	marked := 0
	for _, r := range cluster.List[*appsv1.ControllerRevision](p.world.View(nil)) {
		if r.Labels[contract.ImagePreDownloadCreatedLabel] == "true" {
			marked++
		}
	}
	assert.GreaterOrEqual(t, marked, revisions)
}

func TestCrashesPullImagesOnceAllTheSame(t *testing.T) {
	var last *puller
	simulate.CrashSweep(t, func() (*simulate.World, operator.Planner) {
		w, p := givenPuller(1)
		last = p
		return w, p
	}, func(*simulate.World) { last.pulledOnce(t, 2) })
}

// What is refused is tried again half a minute later, and by then there may be nothing left to pull ahead.
func TestFaultsPullImagesOnceAllTheSame(t *testing.T) {
	var last *puller
	simulate.Explore(t, 8, func(seed uint64) (*simulate.World, operator.Planner, simulate.Faults) {
		w, p := givenPuller(seed)
		last = p
		return w, p, scenarios.Refusals(seed)
	}, func(t testing.TB, w *simulate.World) {
		t.Helper()
		require.Empty(t, w.Violations())
		last.pulledOnce(t, 0)
	})
}

// A canary waits while jobs fail on nodes and pods come to others: in the end all nodes of older pods have the image.
func TestNodesThatFailedOrCamePullAgain(t *testing.T) {
	var pulls *simulate.ImagePulls
	worlds, jobs := 0, 0
	simulate.Explore(t, 8, func(seed uint64) (*simulate.World, operator.Planner, simulate.Faults) {
		w := simulate.New(cluster.Options{Seed: seed, Nodes: 8}, newSet(5, policy(v1beta1.InPlaceIfPossible), partition("3")))
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
