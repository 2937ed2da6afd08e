package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/simulate"
	"github.com/flotilla-project/flotilla/core/workloads/predownload"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// puller plays plans together with what they want aside, in a world that serves ImagePullJob.
type puller struct {
	world *simulate.World
	made  map[string]int // how often a job of the name was created
}

func (p *puller) Plan(view *simulate.View, now time.Time, seed uint64) ([]action.Step, time.Duration) {
	set := simulate.Get[*v1beta1.CloneSet](view, gen.Namespace, "web")
	s, err := newPlayer(p.world).snapshot(view, set, now)
	if err != nil {
		p.world.Violate("no snapshot: %v", err)
		return nil, 0
	}
	s.Now, s.Seed, s.FeatureGates = now, seed, FeatureGates{PreDownload: true}
	s.PullJobs = predownload.Jobs{Version: "v1beta1", Owned: p.jobs()}
	todo := Compute(s)
	steps := append(todo.Steps, simulate.StatusStep(set, Status(s, todo, action.Failures{})))
	return append(steps, todo.PreDownload.Steps...), todo.RequeueAfter
}

func (p *puller) jobs() []*metav1.PartialObjectMetadata {
	var jobs []*metav1.PartialObjectMetadata
	for name := range p.made {
		job := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: name}}
		job.SetGroupVersionKind(contract.ImagePullJobGVK("v1beta1"))
		if stored := p.world.Latest(job); stored != nil {
			job.UID, job.ResourceVersion, job.Labels = stored.GetUID(), stored.GetResourceVersion(), stored.GetLabels()
			jobs = append(jobs, job)
		}
	}
	return jobs
}

// givenPuller has a set of four pods whose image changes twice.
func givenPuller(seed uint64) (*simulate.World, *puller) {
	set := newSet(4, policy(v1beta1.InPlaceIfPossible))
	w := simulate.New(simulate.Options{Seed: seed}, set)
	p := &puller{world: w, made: map[string]int{}}
	w.OnEvent(func(_ *simulate.World, e simulate.Event) {
		if e.Kind == contract.ImagePullJobKind && e.Type == simulate.Added {
			p.made[e.Object.GetName()]++
		}
	})
	minutely(wants("app:2"), wants("app:3"))(w)
	for tick := range 30 { // lets passes happen between the edits
		w.After(time.Duration(tick)*5*time.Second, func() {})
	}
	return w, p
}

// Each of the two later revisions got its job once, and no job is left.
func (p *puller) pulledOnce(t testing.TB) {
	t.Helper()
	assert.Empty(t, p.jobs(), "the story:\n%s", p.world.Story())
	assert.Len(t, p.made, 2)
	for name, n := range p.made {
		assert.Equal(t, 1, n, name)
	}
	marked := 0
	for _, r := range simulate.List[*appsv1.ControllerRevision](p.world.View(nil)) {
		if r.Labels[contract.ImagePreDownloadCreatedLabel] == "true" {
			marked++
		}
	}
	assert.Equal(t, 2, marked)
}

func TestCrashesPullImagesOnceAllTheSame(t *testing.T) {
	var last *puller
	simulate.CrashSweep(t, func() (*simulate.World, simulate.Planner) {
		w, p := givenPuller(1)
		last = p
		return w, p
	}, func(*simulate.World) { last.pulledOnce(t) })
}

func TestFaultsPullImagesOnceAllTheSame(t *testing.T) {
	var last *puller
	simulate.Explore(t, 8, func(seed uint64) (*simulate.World, simulate.Planner, simulate.Faults) {
		w, p := givenPuller(seed)
		last = p
		return w, p, simulate.Refusals(seed)
	}, func(t testing.TB, w *simulate.World) {
		t.Helper()
		require.Empty(t, w.Violations())
		last.pulledOnce(t)
	})
}
