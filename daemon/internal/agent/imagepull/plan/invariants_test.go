package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/plan/refusals"
	"github.com/flotilla-project/flotilla/core/pods/imageref"
	"github.com/flotilla-project/flotilla/core/testing/retries"
	"github.com/flotilla-project/flotilla/core/testing/seeds"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/imagepull/plan"
)

// world is a node: what its NodeImage says, what is in memory, and what was begun in which order. The server
// refuses the status for a while.
type world struct {
	t       *testing.T
	random  *rand.Rand
	image   *v1beta1.NodeImage
	pulls   []plan.Pull
	slots   int
	now     time.Time
	runtime bool
	pressed bool // the node lacks space
	version int64
	agents  int // that have begun so far
	pulled  map[plan.ID]int
	gaveUp  map[plan.ID]bool
	told    map[plan.ID]bool
	refuses bool
	memory  *refusals.Tracker
	tries   retries.Tries
}

func TestPullsKeepTheirInvariants(t *testing.T) {
	seeds.Each(t, 40, func(t *testing.T, seed uint64) {
		t.Helper()
		w := &world{
			t: t, random: rand.New(rand.NewPCG(seed, 1)), now: now, runtime: true,
			image:  &v1beta1.NodeImage{Spec: v1beta1.NodeImageSpec{Images: map[string]v1beta1.ImageSpec{}}},
			pulled: map[plan.ID]int{}, gaveUp: map[plan.ID]bool{}, told: map[plan.ID]bool{}, agents: 1, memory: &refusals.Tracker{},
		}
		w.slots = w.random.IntN(4)
		for range 120 {
			w.happen()
			w.pass()
		}
		w.settle()
	})
}

// happen changes something that is not the plan's to change.
func (w *world) happen() {
	w.now = w.now.Add(time.Second)
	name, tag := fmt.Sprintf("app%d", w.random.IntN(3)), fmt.Sprintf("v%d", w.random.IntN(3))
	switch w.random.IntN(10) {
	case 0, 1:
		w.want(name, tag)
	case 2:
		w.drop(name, tag)
	case 3, 4:
		w.end()
	case 5:
		w.runtime = !w.runtime
	case 6:
		w.giveUp()
	case 7: // the agent restarts
		if w.random.IntN(3) == 0 {
			w.agents++
			w.pulls, w.memory, w.tries = nil, &refusals.Tracker{}, retries.Tries{}
		}
	case 9:
		w.pressed = !w.pressed
		w.image.Annotations = map[string]string{}
		if w.pressed {
			w.image.Annotations[v1beta1.DiskPressureAnnotation] = "true"
		}
	case 8:
		w.refuses = w.random.IntN(4) > 0
	}
}

func (w *world) want(name, tag string) {
	w.version++
	image := w.image.Spec.Images[name]
	next := v1beta1.ImageTagSpec{Tag: tag, Version: w.version}
	if i := slices.IndexFunc(image.Tags, func(t v1beta1.ImageTagSpec) bool { return t.Tag == tag }); i >= 0 {
		image.Tags = slices.Clone(image.Tags)
		image.Tags[i] = next
	} else {
		image.Tags = append(image.Tags, next)
	}
	w.image.Spec.Images[name] = image
}

func (w *world) drop(name, tag string) {
	image := w.image.Spec.Images[name]
	image.Tags = slices.DeleteFunc(slices.Clone(image.Tags), func(t v1beta1.ImageTagSpec) bool { return t.Tag == tag })
	w.image.Spec.Images[name] = image
	if len(image.Tags) == 0 {
		delete(w.image.Spec.Images, name)
	}
}

// end ends one pull that runs or stops.
func (w *world) end() {
	for _, i := range w.random.Perm(len(w.pulls)) {
		p := &w.pulls[i]
		if p.State == plan.Stopping {
			w.pulls = slices.Delete(w.pulls, i, i+1)
			return
		}
		if p.State == plan.Running {
			p.State, p.Result = plan.Ended, plan.Result{At: metav1.Time{Time: w.now}, ImageID: "id"}
			if w.random.IntN(2) == 0 {
				p.Result = plan.Result{At: metav1.Time{Time: w.now}, Failure: "no"}
			}
			return
		}
	}
}

// giveUp lets the manager fail a tag.
func (w *world) giveUp() {
	for name, status := range w.image.Status.ImageStatuses {
		for i := range status.Tags {
			if state := &status.Tags[i]; state.CompletionTime == nil {
				state.Phase, state.CompletionTime, state.Message = v1beta1.ImageFailed, &metav1.Time{Time: w.now}, "gave up"
				w.gaveUp[plan.ID{Ref: imageref.Ref{Name: name, Tag: state.Tag}, Version: state.Version}] = true
				return
			}
		}
	}
}

// pass computes a plan, follows it and checks what must hold.
func (w *world) pass() plan.Plan {
	s := plan.Snapshot{Image: w.image.DeepCopy(), Pulls: slices.Clone(w.pulls), Slots: w.slots, Now: w.now}
	if !w.runtime {
		s.NoRuntime = "away"
	}
	todo := plan.Compute(s)
	assert.Equal(w.t, w.image, s.Image, "the snapshot is left alone")
	w.checkStatus(&todo)
	w.follow(&todo)
	w.checkPulls()
	w.write(&todo)
	return todo
}

// write writes the status in the way of the agent: what was refused is left alone for a while.
func (w *world) write(todo *plan.Plan) {
	if equality.Semantic.DeepEqual(w.image.Status, *todo.Status) {
		return
	}
	key := memory.KeyOf(w.image)
	report := action.Report(w.image, w.memory.For(key, refusals.Observation{Now: w.now}), w.now)
	now := func() time.Time { return w.now }
	done := progress.Run(report.Steps, progress.InTurn(w.answer, now), progress.Options{Workload: key, Refusals: w.memory})
	if done.Done(action.PatchStatus) == 0 {
		return
	}
	w.image.Status = *todo.Status
	for _, ended := range todo.Ended {
		assert.False(w.t, w.told[ended.ID], "%v is told twice", ended.ID)
		w.told[ended.ID] = true
	}
}

// answer is the server's answer to the status.
func (w *world) answer(*action.Action) progress.Outcome {
	if !w.refuses {
		w.tries.Taken("the status")
		return progress.OutcomeOf(nil)
	}
	require.NoError(w.t, w.tries.Refused("the status", w.now))
	return progress.OutcomeOf(apierrors.NewTooManyRequests(`admission webhook "limit" denied the request: refused`, 0))
}

func (w *world) follow(todo *plan.Plan) {
	for _, id := range todo.Drop {
		w.pulls = slices.DeleteFunc(w.pulls, func(p plan.Pull) bool {
			return p.ID == id && (p.State == plan.Queued || p.State == plan.Ended)
		})
	}
	for _, id := range todo.Stop {
		w.at(id).State = plan.Stopping
	}
	for _, o := range todo.Requests {
		if w.at(o.ID) == nil {
			w.pulls = append(w.pulls, plan.Pull{ID: o.ID, State: plan.Queued})
		}
	}
	for _, id := range todo.Start {
		p := w.at(id)
		require.Equal(w.t, plan.Queued, p.State)
		for i := range w.pulls {
			if &w.pulls[i] == p {
				break
			}
			assert.NotEqual(w.t, plan.Queued, w.pulls[i].State, "%v overtakes %v", id, w.pulls[i].ID)
		}
		p.State, p.StartTime = plan.Running, &metav1.Time{Time: w.now}
		w.pulled[id]++
		assert.LessOrEqual(w.t, w.pulled[id], w.agents, "%v is pulled again", id)
		assert.True(w.t, w.runtime, "%v begins without a runtime", id)
		assert.False(w.t, w.pressed, "%v begins on a node without space", id)
		assert.False(w.t, w.gaveUp[id], "%v begins after the manager gave it up", id)
	}
}

// at returns the pull that was not told to stop.
func (w *world) at(id plan.ID) *plan.Pull {
	i := slices.IndexFunc(w.pulls, func(p plan.Pull) bool { return p.ID == id && p.State != plan.Stopping })
	if i < 0 {
		return nil
	}
	return &w.pulls[i]
}

func (w *world) checkPulls() {
	holding, seen := 0, map[plan.ID]bool{}
	for _, p := range w.pulls {
		if p.State == plan.Running || p.State == plan.Stopping {
			holding++
		}
		if p.State != plan.Stopping {
			assert.False(w.t, seen[p.ID], "%v twice", p.ID)
			seen[p.ID] = true
		}
	}
	if w.slots > 0 {
		assert.LessOrEqual(w.t, holding, w.slots)
	}
}

func (w *world) checkStatus(todo *plan.Plan) {
	counted, tags := map[v1beta1.ImagePullPhase]int32{}, 0
	for name, image := range w.image.Spec.Images {
		tags += len(image.Tags)
		states := todo.Status.ImageStatuses[name].Tags
		require.Len(w.t, states, len(image.Tags))
		assert.True(w.t, slices.IsSortedFunc(states, func(a, b v1beta1.ImageTagStatus) int { return compare(a.Tag, b.Tag) }))
		for _, state := range states {
			counted[state.Phase]++
			id := plan.ID{Ref: imageref.Ref{Name: name, Tag: state.Tag}, Version: state.Version}
			assert.Equal(w.t, state.CompletionTime != nil, state.Phase == v1beta1.ImageSucceeded || state.Phase == v1beta1.ImageFailed)
			if w.gaveUp[id] {
				assert.Equal(w.t, "gave up", state.Message)
			}
		}
	}
	s := todo.Status
	assert.Len(w.t, s.ImageStatuses, len(w.image.Spec.Images))
	assert.Equal(w.t, int32(tags), s.Desired)
	assert.Equal(w.t, [4]int32{counted[v1beta1.ImageWaiting], counted[v1beta1.ImagePulling], counted[v1beta1.ImageSucceeded], counted[v1beta1.ImageFailed]},
		[4]int32{s.Waiting, s.Pulling, s.Succeeded, s.Failed})
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	default:
		return 0
	}
}

// settle lets all pulls end with nothing else happening: all tags finish, which is told within a minute, and
// nothing is left in memory.
func (w *world) settle() {
	w.runtime, w.refuses, w.pressed, w.image.Annotations = true, false, false, nil
	for range 60 {
		w.now = w.now.Add(time.Second)
		w.end()
		w.pass()
	}
	last := w.pass()
	assert.False(w.t, last.Unfinished)
	assert.Equal(w.t, last.Status.Desired, last.Status.Succeeded+last.Status.Failed)
	assert.Empty(w.t, w.pulls)
	assert.Equal(w.t, w.image.Status, *w.pass().Status, "then nothing changes")
}
