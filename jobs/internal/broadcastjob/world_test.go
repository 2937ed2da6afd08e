package broadcastjob

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/nodes"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/plan/refusals"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/retries"
	"github.com/flotilla-project/flotilla/core/testing/seeds"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

var (
	errKilled = errors.New("the operator was killed")
	jobName   = types.NamespacedName{Namespace: "ns", Name: "job"}
)

// world is a job, a few nodes with their kubelets, pods of others, a user, and the passes of the operator over caches that
// may lag. The server may refuse what the operator writes, and the operator may be killed between any two writes; it
// forgets everything then.
type world struct {
	*testing.T
	*rand.Rand
	job   *v1beta1.BroadcastJob // nil once it is gone
	nodes map[string]*corev1.Node
	pods  map[string]*corev1.Pod
	owner map[string]types.UID // the jobs of pods, empty for pods of others
	at    time.Time
	uids  int

	shown    moment // what the caches show
	caches   *informers
	detector *fastclient.Detector
	passes   *passes
	bind     bool
	wrote    bool      // since the caches have shown all
	wake     time.Time // when the operator wants to look again, zero for never

	calm    bool
	rested  time.Time             // when all pauses after refusals are over, once the world is calm
	refused action.Verb           // what the server refuses
	looked  *v1beta1.BroadcastJob // the job of the pass
	memory  *refusals.Tracker
	tries   retries.Tries
	ended   *v1beta1.BroadcastJobStatus
	taken   bool               // a user has deleted the job
	counted map[types.UID]bool // nodes of which the status has told a success
	calmed  map[string]bool    // pods that were created when nothing changed any more
	deleted map[string]bool    // pods that were deleted while they ran and had not failed
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{
		T: t, Rand: rand.New(rand.NewPCG(seed, 1)), nodes: map[string]*corev1.Node{}, pods: map[string]*corev1.Pod{},
		owner: map[string]types.UID{}, at: gen.Epoch(), detector: &fastclient.Detector{},
	}
	w.bind = w.IntN(3) == 0
	w.addJob()
	for range w.IntN(6) {
		w.addNode()
	}
	w.newOperator()
	return w
}

func (w *world) Now() time.Time                  { return w.at }
func (w *world) Since(t time.Time) time.Duration { return w.at.Sub(t) }

func (w *world) odds(n int) bool { return !w.calm && w.IntN(n) == 0 }

// newOperator starts the operator, whose caches are empty for a while.
func (w *world) newOperator() {
	w.memory, w.tries, w.wrote, w.caches = &refusals.Tracker{}, retries.Tries{}, true, newInformers()
	require.NoError(w, addIndexes(w.Context(), w.caches))
	w.passes = newPasses(sources{
		Reader: fastclient.NewReader(w.caches, runtime.NewScheme(), fastclient.Options{Detector: w.detector}),
		Refusals: func(job *v1beta1.BroadcastJob, _ []*corev1.Pod, now time.Time) action.Refusals {
			return w.memory.For(memory.KeyOf(job), refusals.Observation{Now: now, Generation: job.Generation, Available: func() int { return 0 }})
		},
		Clock: w, Seed: w.Uint64, Bind: w.bind,
	})
	w.caches.kinds[kindOf(&v1beta1.BroadcastJob{})].events = &handler.EnqueueRequestForObject{}
	w.caches.kinds[kindOf(&corev1.Pod{})].events = podEvents()
	w.caches.kinds[kindOf(&corev1.Node{})].events = nodes.Events(w.passes.nodeEvents)
	w.wakeIn(0)
}

func (w *world) wakeIn(after time.Duration) {
	if at := w.at.Add(after); w.wake.IsZero() || at.Before(w.wake) {
		w.wake = at
	}
}

// stamp makes an object another version, and gives a new one its UID.
func (w *world) stamp(o client.Object) {
	w.uids++
	o.SetResourceVersion(strconv.Itoa(w.uids))
	if o.GetUID() == "" {
		o.SetUID(types.UID("uid-" + o.GetResourceVersion()))
	}
}

// operate runs one pass if there is reason for one, of which a crash may leave a part.
func (w *world) operate() {
	w.refresh()
	if w.wake.IsZero() || w.at.Before(w.wake) {
		return
	}
	w.wake = time.Time{}
	pass, err := w.passes.Look(ctrl.LoggerInto(w.Context(), logr.Discard()), jobName)
	switch {
	case apierrors.IsNotFound(err):
		w.passes.eligible.Forget(jobName)
		return
	case !w.caches.filled:
		require.Error(w, err, "a cache that is not full is read")
		w.caches.filled = !w.odds(2)
		w.wakeIn(0)
		return
	}
	require.NoError(w, err)
	require.NoError(w, pass.Err)
	w.looked = pass.Object.(*v1beta1.BroadcastJob)
	recount, counted, killed := w.recount(), w.successes(), false
	done := progress.Run(pass.Plan.Steps, progress.InTurn(func(a *action.Action) progress.Outcome {
		if killed = killed || w.odds(8); killed {
			return progress.OutcomeOf(errKilled)
		}
		return progress.OutcomeOf(w.write(a))
	}, func() time.Time { return w.at }), progress.Options{
		Workload: memory.KeyOf(pass.Object), Generation: pass.Object.GetGeneration(), Refusals: w.memory,
	})
	if killed {
		w.newOperator()
		return
	}
	if after := pass.Status(done.Failures().WithDeferred(pass.Plan.Deferred)); after != nil {
		w.report(after.(*v1beta1.BroadcastJob), recount, counted)
	}
	pass.Plan.RequeueWithin(done.RetryAfter)
	if pass.Plan.RequeueAfter > 0 {
		w.wakeIn(pass.Plan.RequeueAfter)
	}
}

func TestRandomWorldsKeepTheInvariants(t *testing.T) {
	seeds.Each(t, 400, func(t *testing.T, seed uint64) {
		t.Helper()
		w := newWorld(t, seed)
		for range 80 {
			w.at = w.at.Add(time.Second)
			w.disturb()
			w.operate()
			for _, name := range slices.Sorted(maps.Keys(w.pods)) {
				if w.IntN(4) == 0 {
					w.kubelet(name)
				}
			}
		}
		w.settle()
		w.judgeTheEnd()
		w.detector.Check(t)
	})
}

// longestPause is that after a refused write.
const longestPause = 31 * time.Second

// settle ends all faults, and lets the world come to rest within two minutes.
func (w *world) settle() {
	w.calm, w.refused, w.rested = true, "", w.at.Add(longestPause)
	if w.job == nil && w.taken {
		w.addJob()
	}
	w.edit(func(spec *v1beta1.BroadcastJobSpec) { spec.Paused, spec.Parallelism = false, new(intstr.FromInt(2)) })
	for !w.caches.filled { // a process that has just started sees no deadline
		w.operate()
	}
	for i := range 120 {
		w.at = w.at.Add(time.Second)
		w.collect()
		if i == 60 { // jobs that wait for nodes are woken by nothing else
			w.addNode()
			w.heal()
		}
		if w.job != nil && w.job.Spec.Paused { // by a failed pod
			w.edit(func(spec *v1beta1.BroadcastJobSpec) { spec.Paused = false })
		}
		w.operate()
		w.onTime()
		w.inTime()
		for _, name := range slices.Sorted(maps.Keys(w.pods)) {
			w.kubelet(name)
		}
	}
}

// judgeTheEnd holds that a world at rest has what was wanted (G5, I-BCJ-6), and that nothing more is written.
func (w *world) judgeTheEnd() {
	if w.job == nil { // its time is over
		require.NotNil(w, w.ended)
		return
	}
	w.refresh()
	pass, err := w.passes.Look(w.Context(), jobName)
	require.NoError(w, err)
	assert.True(w, pass.Plan.Empty(), "at rest nothing is written (G5): %s", &pass.Plan)
	status := w.job.Status
	for _, o := range w.podsOf(w.pods, w.job) {
		assert.True(w, hasEnded(o), "a pod runs for ever")
	}
	if w.ended != nil {
		assert.True(w, equality.Semantic.DeepEqual(*w.ended, status), "what an ended job says is final (I-BCJ-4)")
		return
	}
	after := pass.Status(action.Failures{})
	require.NotNil(w, after)
	assert.True(w, equality.Semantic.DeepEqual(status, after.(*v1beta1.BroadcastJob).Status), "at rest nothing is told (G5)")
	for name, n := range w.nodes {
		ran := w.counted[n.UID]
		for _, o := range w.podsOf(w.pods, w.job) {
			ran = ran || nodeOf(o) == name
		}
		assert.True(w, ran || !takes(n), "node %s has no pod (I-BCJ-6): %s", name, status.Message)
	}
	if status.Desired > 0 && w.job.Spec.CompletionPolicy.Type != v1beta1.CompletionNever {
		assert.Fail(w, "the job has not ended", "%s", status.Message)
	}
}

// onTime holds that a job does not outlive its deadline (I-BCJ-5).
func (w *world) onTime() {
	if w.job == nil || w.ended != nil || w.job.Spec.Paused || w.job.Status.PausedSince != nil || w.refused != "" {
		return
	}
	limit := w.job.Spec.CompletionPolicy.ActiveDeadlineSeconds
	if limit == nil || w.job.Status.StartTime == nil {
		return
	}
	run := w.at.Sub(w.job.Status.StartTime.Time) - time.Duration(w.job.Status.PausedSeconds)*time.Second
	require.Less(w, run, time.Duration(*limit+1)*time.Second, "the job outlives its deadline (I-BCJ-5)")
}

// inTime holds that a job that has ended goes when its time is over (I-BCJ-5).
func (w *world) inTime() {
	if w.job == nil || w.ended == nil || w.job.Spec.CompletionPolicy.TTLSecondsAfterFinished == nil || w.at.Before(w.rested) {
		return
	}
	over := w.ended.CompletionTime.Add(time.Duration(*w.job.Spec.CompletionPolicy.TTLSecondsAfterFinished) * time.Second)
	require.Less(w, w.at.Sub(over), time.Second, "the job outlives its time (I-BCJ-5)")
}
