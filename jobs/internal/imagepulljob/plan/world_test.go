package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/testing/seeds"

	nodeimage "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// world is a job, the NodeImages of a few nodes, their agents and a user. The operator may be killed between any two
// writes, and forgets everything.
type world struct {
	*testing.T
	*rand.Rand
	job    *v1beta1.ImagePullJob
	images map[string]*nodeimage.NodeImage
	at     time.Time
	calm   bool
	most   int // the largest parallelism since the pulls under way began
}

func (w *world) names() []string {
	var names []string
	for name := range w.images {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (w *world) snapshot() Snapshot {
	s := Snapshot{Job: w.job, TTL: 300 * time.Second, Now: w.at}
	for _, name := range w.names() {
		s.Targets = append(s.Targets, w.images[name])
		if len((&pass{}).desired(&tally{uid: w.job.UID}, w.images[name], nil, nothing)) > 0 {
			s.Owned = append(s.Owned, w.images[name])
		}
	}
	return s
}

// pulling returns how many nodes have an entry of the job that has not ended.
func (w *world) pulling() (n int) {
	for _, o := range w.images {
		for name, spec := range o.Spec.Images {
			for _, tag := range spec.Tags {
				ended := slices.ContainsFunc(o.Status.ImageStatuses[name].Tags, func(s nodeimage.ImageTagStatus) bool {
					return s.Tag == tag.Tag && s.Version == tag.Version && s.CompletionTime != nil
				})
				if !ended {
					n++
				}
			}
		}
	}
	return n
}

func (w *world) limit() int {
	p := pass{Snapshot: w.snapshot()}
	return p.parallelism()
}

// operate runs one pass, of which a crash may leave a part.
func (w *world) operate() {
	if w.job.Status.CompletionTime != nil {
		return
	}
	p := Compute(w.snapshot())
	require.NoError(w, p.Err)
	for _, step := range p.Steps {
		for i := range step.Actions {
			if !w.calm && w.IntN(5) == 0 {
				return // killed
			}
			a := &step.Actions[i]
			require.Equal(w, action.PatchSpec, a.Verb)
			w.images[a.Object.GetName()] = apply(w.T, a, w.images[a.Object.GetName()])
			w.check()
		}
	}
	w.job = w.job.DeepCopy()
	w.job.Status = *p.status
}

// check holds that no more nodes pull than the job allowed when they began (I-IPJ-1).
func (w *world) check() {
	w.most = max(min(w.most, w.pulling()), w.limit())
	require.LessOrEqual(w, w.pulling(), w.most)
}

// agent brings the pulls of a node forward.
func (w *world) agent(name string) {
	o := w.images[name].DeepCopy()
	o.Status.ImageStatuses = map[string]nodeimage.ImageStatus{}
	for image, spec := range o.Spec.Images {
		var told []nodeimage.ImageTagStatus
		for _, tag := range spec.Tags {
			s := nodeimage.ImageTagStatus{Tag: tag.Tag, Version: tag.Version, Phase: nodeimage.ImagePulling}
			for _, before := range w.images[name].Status.ImageStatuses[image].Tags {
				if before.Tag == tag.Tag && before.Version == tag.Version {
					s = before
				}
			}
			if s.CompletionTime == nil && (w.calm || w.IntN(2) == 0) {
				s.Phase, s.CompletionTime = nodeimage.ImageSucceeded, new(metav1.NewTime(w.at))
				if w.IntN(4) == 0 {
					s.Phase = nodeimage.ImageFailed
				}
			}
			told = append(told, s)
		}
		o.Status.ImageStatuses[image] = nodeimage.ImageStatus{Tags: told}
	}
	w.images[name] = o
}

func (w *world) disturb() {
	names := w.names()
	switch w.IntN(6) {
	case 0:
		name := fmt.Sprintf("n%d", w.IntN(8))
		w.images[name] = image(name)
	case 1:
		if len(names) > 0 {
			delete(w.images, names[w.IntN(len(names))])
		}
	case 2:
		w.edit(func(spec *v1beta1.ImagePullJobSpec) { spec.Parallelism = new(intstr.FromInt(w.IntN(4))) })
	case 3:
		w.edit(func(spec *v1beta1.ImagePullJobSpec) {
			spec.PullPolicy = &v1beta1.PullPolicy{TimeoutSeconds: new(int32(1 + w.IntN(3)))}
		})
	case 4:
		w.edit(func(spec *v1beta1.ImagePullJobSpec) { spec.Image = []string{"nginx", "redis"}[w.IntN(2)] })
	}
}

func (w *world) edit(change func(*v1beta1.ImagePullJobSpec)) {
	if w.job.Status.CompletionTime != nil {
		return
	}
	w.job = w.job.DeepCopy()
	w.job.Generation++
	change(&w.job.Spec)
}

func TestRandomWorldsKeepTheInvariants(t *testing.T) {
	seeds.Each(t, 300, func(t *testing.T, seed uint64) {
		t.Helper()
		w := &world{T: t, Rand: rand.New(rand.NewPCG(seed, 1)), job: job(), images: map[string]*nodeimage.NodeImage{}, at: now}
		w.job.Status.StartTime = nil
		for i := range w.IntN(6) {
			w.images[fmt.Sprintf("n%d", i)] = image(fmt.Sprintf("n%d", i))
		}
		for range 60 {
			w.at = w.at.Add(time.Second)
			w.disturb()
			w.operate()
			for _, name := range w.names() {
				if w.IntN(3) == 0 {
					w.agent(name)
				}
			}
		}
		w.calm = true
		w.edit(func(spec *v1beta1.ImagePullJobSpec) { spec.Parallelism = new(intstr.FromInt(2)) })
		for range 30 { // more than twice the nodes
			w.at = w.at.Add(time.Second)
			w.operate()
			for _, name := range w.names() {
				w.agent(name)
			}
		}
		status := w.job.Status
		assert.NotNil(t, status.CompletionTime, status.Message)
		assert.Equal(t, status.Desired, status.Succeeded+status.Failed)
	})
}
