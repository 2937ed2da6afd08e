package plan

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"

	nodeimage "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// fleet are the NodeImages of a job with what their agents and their manager do over days: a pull lasts some time and
// fails, that of a dead node never ends and is given up after its deadline, and a tag goes when its time is over.
type fleet struct {
	images []*nodeimage.NodeImage
	lasts  time.Duration
	dead   int // the first so many nodes
	begun  []time.Time
	rounds []int
}

// givenUp is how long after the deadline of a tag the manager of NodeImages gives it up.
const givenUp = 10 * time.Minute

func newFleet(n, dead int, lasts time.Duration) *fleet {
	f := &fleet{lasts: lasts, dead: dead, begun: make([]time.Time, n), rounds: make([]int, n)}
	for i := range n {
		f.images = append(f.images, image(fmt.Sprintf("n%03d", i)))
	}
	return f
}

// goOn brings a node to a time.
func (f *fleet) goOn(i int, at time.Time) {
	o := f.images[i].DeepCopy()
	f.images[i] = o
	spec, there := o.Spec.Images["nginx"]
	if !there {
		o.Status.ImageStatuses = nil
		return
	}
	tag := &spec.Tags[0]
	s := nodeimage.ImageTagStatus{Tag: tag.Tag, Version: tag.Version, Phase: nodeimage.ImagePulling}
	if old := o.Status.ImageStatuses["nginx"].Tags; len(old) > 0 && old[0].Version == tag.Version {
		s = old[0]
	} else {
		f.begun[i] = at
		f.rounds[i]++
	}
	ended := i >= f.dead && at.Sub(f.begun[i]) >= f.lasts
	if d := tag.PullPolicy.ActiveDeadlineSeconds; d != nil && at.Sub(tag.CreatedAt.Time) >= action.Seconds(*d)+givenUp {
		ended = true
	}
	if s.CompletionTime == nil && ended {
		s.Phase, s.CompletionTime = nodeimage.ImageFailed, new(metav1.NewTime(at))
	}
	o.Status.ImageStatuses = map[string]nodeimage.ImageStatus{"nginx": {Tags: []nodeimage.ImageTagStatus{s}}}
	if s.CompletionTime != nil && at.Sub(s.CompletionTime.Time) >= action.Seconds(*tag.PullPolicy.TTLSecondsAfterFinished) {
		o.Spec.Images, o.Status.ImageStatuses = nil, nil
	}
}

// However long pulls last, and whoever dies, a job asks each node once and ends (I-IPJ-4, I-IPJ-5).
func TestAJobAsksEachNodeOnceAndEnds(t *testing.T) {
	for name, c := range map[string]struct {
		nodes, dead      int
		lasts            time.Duration
		timeout, backoff int32
		ttl              *int32
		within           time.Duration
	}{
		"attempts time out":           {nodes: 10, lasts: 2407 * time.Second, timeout: 600, backoff: 3, within: 10 * 41 * time.Minute},
		"it fails at once":            {nodes: 20, lasts: 40 * time.Second, timeout: 10, backoff: 5, within: 20 * time.Minute},
		"it goes as soon as it can":   {nodes: 10, lasts: 20 * time.Minute, timeout: 600, backoff: 3, ttl: new(int32(0)), within: 4 * time.Hour},
		"a node dies while it pulls":  {nodes: 3, dead: 1, lasts: time.Minute, timeout: 600, backoff: 3, within: 90 * time.Minute},
		"all nodes die as they begin": {nodes: 4, dead: 4, timeout: 600, backoff: 3, within: 6 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(c.nodes, c.dead, c.lasts)
			j := job(func(j *v1beta1.ImagePullJob) {
				j.Spec.PullPolicy = &v1beta1.PullPolicy{TimeoutSeconds: &c.timeout, BackoffLimit: &c.backoff}
				j.Spec.CompletionPolicy.TTLSecondsAfterFinished = c.ttl
				j.Status = v1beta1.ImagePullJobStatus{}
			})
			named := false
			at := now
			for ; j.Status.CompletionTime == nil && at.Before(now.Add(3*24*time.Hour)); at = at.Add(10 * time.Second) {
				for i := range f.images {
					f.goOn(i, at)
				}
				p := Compute(Snapshot{Job: j, Targets: f.images, TTL: 300 * time.Second, Now: at})
				for i := range f.images {
					f.images[i] = after(t, &p, f.images[i])
				}
				j = j.DeepCopy()
				j.Status = *p.status
				named = named || j.Status.Message == MessageProgress+"0.0%; "+MessageSlow+"n000"
			}
			require.NotNil(t, j.Status.CompletionTime, j.Status.Message)
			assert.LessOrEqual(t, at.Sub(now), c.within)
			for i, n := range f.rounds {
				assert.Equal(t, 1, n, "rounds of node %d", i)
			}
			assert.Equal(t, c.dead > 0 || c.lasts > slow, named, "a node that holds a place for long is named")
		})
	}
}

// after is the NodeImage with all that the plan writes to it.
func after(t *testing.T, p *Plan, o *nodeimage.NodeImage) *nodeimage.NodeImage {
	t.Helper()
	for _, step := range p.Steps {
		for i := range step.Actions {
			if a := &step.Actions[i]; a.Object.GetName() == o.Name {
				o = apply(t, a, o)
			}
		}
	}
	return o
}

func TestAJobWaitsForTheFirstNodeImage(t *testing.T) {
	p := compute(t, Snapshot{Job: job(), NoNodeImages: true, Now: now})
	assert.Nil(t, p.status.CompletionTime)
	assert.Equal(t, MessageNoProgress+"; "+MessageNoNodeImages, p.status.Message)
	p = compute(t, Snapshot{Job: job(policy(v1beta1.CompletionPolicy{ActiveDeadlineSeconds: new(int64(1))})), NoNodeImages: true, Now: now.Add(time.Hour)})
	assert.Equal(t, MessageDeadline, p.status.Message)
	p = compute(t, Snapshot{Job: job(), Now: now})
	assert.NotNil(t, p.status.CompletionTime, "no node is selected")
}

func TestALongDeadlineIsNone(t *testing.T) {
	p := compute(t, Snapshot{
		Job: job(policy(v1beta1.CompletionPolicy{ActiveDeadlineSeconds: new(int64(10_000_000_000))})), Targets: []*nodeimage.NodeImage{image("n0")}, Now: now,
	})
	assert.Nil(t, p.status.CompletionTime)
}

func TestACompletedJobSaysWhatWasMissing(t *testing.T) {
	named := job(func(j *v1beta1.ImagePullJob) {
		j.Spec.Selector = &v1beta1.ImagePullJobNodeSelector{Names: []string{"nod-1"}}
	})
	p := compute(t, Snapshot{Job: named, Absent: 1, Now: now})
	assert.Equal(t, MessageCompleted+"; 1 nodes in spec.selector.names have no NodeImage", p.status.Message)
}

func TestEntriesOfEarlierReleasesGoOn(t *testing.T) {
	o := pulled(t, "n0", job(), nodeimage.ImagePulling)
	o.Spec.Images["nginx"].Tags[0].PullPolicy.ActiveDeadlineSeconds = nil
	p := compute(t, Snapshot{Job: job(), Targets: []*nodeimage.NodeImage{o}, Now: now})
	assert.Empty(t, p.Steps, "a pull under way does not begin anew for a bound")
}

// A deadline that practically never comes keeps tags for as long as the field allows.
func TestTheLongestDeadlineKeepsTags(t *testing.T) {
	j := job(policy(v1beta1.CompletionPolicy{ActiveDeadlineSeconds: new(int64(math.MaxInt64))}))
	p := compute(t, Snapshot{Job: j, Targets: []*nodeimage.NodeImage{image("n0")}, TTL: 300 * time.Second, Now: now})
	assert.Nil(t, p.status.CompletionTime)
	asked := written(t, &p, image("n0"))
	at := asked.Spec.Images["nginx"].Tags[0].PullPolicy
	assert.EqualValues(t, longestDeadline, *at.ActiveDeadlineSeconds)
	assert.GreaterOrEqual(t, *at.TTLSecondsAfterFinished, int32(longestTTL))
	answer(asked, nodeimage.ImagePulling)
	p = compute(t, Snapshot{Job: j, Targets: []*nodeimage.NodeImage{asked}, TTL: 300 * time.Second, Now: now})
	assert.True(t, p.Empty(), "its pull goes on: %s", &p)
}
