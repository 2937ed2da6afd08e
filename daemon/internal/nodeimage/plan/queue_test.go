package plan

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/testing/seeds"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

// queue is a node that pulls one or two images at a time, and its manager. Each tag has a deadline.
type queue struct {
	dice
	t     *testing.T
	image *v1beta1.NodeImage
	now   time.Time
	skew  time.Duration // of the node's clock
	slots int
	lasts map[string]time.Duration // how long a pull takes, at most its deadline
	ends  map[string]time.Time     // of the pulls under way
	seen  *Sightings
}

func newQueue(t *testing.T, seed uint64) *queue {
	t.Helper()
	q := &queue{
		dice: dice{rand.New(rand.NewPCG(seed, 5))}, t: t, now: now, image: nodeImage(),
		lasts: map[string]time.Duration{}, ends: map[string]time.Time{}, seen: &Sightings{},
	}
	q.slots = 1 + q.IntN(2)
	if q.once(2) {
		q.skew = time.Duration(q.IntN(100)-50) * time.Hour
	}
	var tags []v1beta1.ImageTagSpec
	for i := range 2 + q.IntN(12) {
		name, seconds := fmt.Sprintf("%02d", i), 60+q.Int64N(7200)
		tags = append(tags, tag(name, deadline(seconds)))
		q.lasts[name] = time.Duration(1+q.Int64N(seconds)) * time.Second
	}
	wants(tags...)(q.image)
	return q
}

// agent ends the pulls whose time is over, and begins others.
func (q *queue) agent() {
	told := func(at time.Time) *metav1.Time { return new(metav1.NewTime(at.Add(q.skew).Truncate(time.Second))) }
	states := q.image.Status.ImageStatuses["nginx"].Tags
	known := map[string]bool{}
	for i := range states {
		s := &states[i]
		known[s.Tag] = true
		if end, pulling := q.ends[s.Tag]; pulling && !q.now.Before(end) {
			s.Phase, s.CompletionTime = v1beta1.ImageSucceeded, told(q.now)
			delete(q.ends, s.Tag)
		}
	}
	for i := range q.image.Spec.Images["nginx"].Tags {
		if name := q.image.Spec.Images["nginx"].Tags[i].Tag; !known[name] {
			states = append(states, state(name, v1beta1.ImageWaiting))
		}
	}
	for i := range states {
		if s := &states[i]; s.Phase == v1beta1.ImageWaiting && len(q.ends) < q.slots {
			s.Phase, s.StartTime = v1beta1.ImagePulling, told(q.now)
			q.ends[s.Tag] = q.now.Add(q.lasts[s.Tag])
		}
	}
	setStates(&q.image.Status, "nginx", states)
}

// manage runs a pass of the manager, and returns what it gave up.
func (q *queue) manage() []Failure {
	s := Snapshot{Name: "n1", Node: node(), Image: q.image, Seen: q.seen.See(q.image, q.now), Now: q.now}
	p := &Plan{Plan: action.Plan{Now: q.now}}
	supervise(s, p)
	q.image = q.image.DeepCopy()
	q.image.Status = *p.Status
	return p.Failures
}

func (q *queue) unfinished() bool {
	return len(completions(q.image)) < len(q.image.Spec.Images["nginx"].Tags)
}

// However long a queue is, no tag in it is given up while the agent works; when that dies, all of them end.
func TestOnlySilentAgentsLosePulls(t *testing.T) {
	seeds.Each(t, 150, func(t *testing.T, seed uint64) {
		t.Helper()
		q := newQueue(t, seed)
		dies := q.now.Add(time.Duration(q.IntN(20*3600)) * time.Second)
		for ; q.unfinished() && q.now.Before(dies); q.now = q.now.Add(3 * time.Minute) {
			q.agent()
			if q.skew == 0 && q.once(9) { // another manager, to which the node's clock is all there is
				q.seen = &Sightings{}
			}
			require.Empty(t, q.manage(), "the agent works")
		}
		last := q.now.Add(7260*time.Second + 2*agentTimeout)
		for ; q.unfinished(); q.now = q.now.Add(3 * time.Minute) {
			q.manage()
			require.True(t, q.now.Before(last), "the agent is dead: %+v", q.image.Status.ImageStatuses)
		}
	})
}
