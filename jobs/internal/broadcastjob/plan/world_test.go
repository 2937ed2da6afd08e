package plan

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/plan/refusals"
	"github.com/flotilla-project/flotilla/core/pods/eligibility"
	"github.com/flotilla-project/flotilla/core/testing/simulate"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

var errKilled = errors.New("the operator was killed")

// world is a job, a few nodes with their kubelets, and a user. The server may refuse what the operator writes, and the
// operator may be killed between any two writes; it forgets everything then.
type world struct {
	*testing.T
	*rand.Rand
	job   *v1beta1.BroadcastJob // nil once it is gone
	nodes map[string]Node
	pods  map[string]*corev1.Pod
	at    time.Time
	wake  time.Time // when the operator wants to look again
	dirty bool      // something has happened since it looked
	uids  int

	calm    bool
	rested  time.Time   // when all pauses after refusals are over, once the world is calm
	refused action.Verb // what the server refuses
	memory  *refusals.Tracker
	tries   simulate.Tries
	ended   *v1beta1.BroadcastJobStatus
	counted map[types.UID]bool // nodes of which the status has told a success
	calmed  map[string]bool    // pods that were created when nothing changed any more
	deleted map[string]bool    // pods that were deleted while they ran and had not failed
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{
		T: t, Rand: rand.New(rand.NewPCG(seed, 1)), nodes: map[string]Node{}, pods: map[string]*corev1.Pod{}, at: now, dirty: true,
		memory: &refusals.Tracker{}, counted: map[types.UID]bool{}, calmed: map[string]bool{}, deleted: map[string]bool{},
	}
	w.job = job(func(j *v1beta1.BroadcastJob) {
		j.Status = v1beta1.BroadcastJobStatus{}
		j.Spec.FailurePolicy.Type = []v1beta1.FailurePolicyType{"", v1beta1.FailFast, v1beta1.FailContinue, v1beta1.FailContinue, v1beta1.FailPause}[w.IntN(5)]
		if w.IntN(2) == 0 {
			restarting(j)
		} else if w.IntN(2) == 0 {
			failing(
				onExit(batchv1.PodFailurePolicyActionFailJob, batchv1.PodFailurePolicyOnExitCodesOpIn, 1),
				onExit(batchv1.PodFailurePolicyActionIgnore, batchv1.PodFailurePolicyOnExitCodesOpIn, 2, 3),
				ignoreDisruption(),
			)(j)
		}
		if w.IntN(3) == 0 {
			never(j)
		} else {
			if w.IntN(4) == 0 {
				deadline(int64(20 + w.IntN(60)))(j)
			}
			if w.IntN(3) == 0 {
				ttl(int32(w.IntN(40)))(j)
			}
		}
		if w.IntN(2) == 0 {
			parallel([]string{"1", "2", "40%", "0"}[w.IntN(4)])(j)
		}
	})
	for range w.IntN(6) {
		w.addNode()
	}
	return w
}

func (w *world) uid() types.UID {
	w.uids++
	return types.UID("uid-" + strconv.Itoa(w.uids))
}

func (w *world) addNode() {
	n := node(fmt.Sprintf("n%d", w.IntN(8)))
	if _, there := w.nodes[n.Name]; !there {
		n.Node.UID = w.uid()
		w.nodes[n.Name], w.dirty = n, true
	}
}

func (w *world) snapshot() Snapshot {
	s := given(w.job, nil)
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		s.Nodes = append(s.Nodes, w.nodes[name])
	}
	for _, name := range slices.Sorted(maps.Keys(w.pods)) {
		s.Pods = append(s.Pods, w.pods[name])
	}
	s.Now, s.Seed = w.at, w.Uint64()
	s.Refusals = w.memory.For(memory.KeyOf(w.job), refusals.Observation{Now: w.at, Generation: w.job.Generation, Available: func() int { return 0 }})
	return s
}

// operate runs one pass if there is reason for one, of which a crash may leave a part.
func (w *world) operate() {
	if w.job == nil || !w.dirty && (w.wake.IsZero() || w.at.Before(w.wake)) {
		return
	}
	w.dirty, w.wake = false, time.Time{}
	before := w.job
	todo := compute(w.T, w.snapshot())
	require.NoError(w, todo.Err)
	recount, counted, killed := w.recount(), w.successes(), false
	done := progress.Run(todo.Steps, progress.InTurn(func(a *action.Action) progress.Outcome {
		if !w.calm && w.IntN(8) == 0 {
			killed = true
			return progress.OutcomeOf(errKilled)
		}
		return progress.OutcomeOf(w.write(a))
	}, func() time.Time { return w.at }), progress.Options{
		Workload: memory.KeyOf(w.job), Generation: w.job.Generation, Refusals: w.memory,
	})
	if killed {
		w.memory, w.tries, w.dirty = &refusals.Tracker{}, simulate.Tries{}, true
		return
	}
	status := todo.Status(done.Failures().WithDeferred(todo.Deferred))
	if status != nil && w.job == before { // a status of an older version is not sent
		w.report(*status, recount, counted)
	}
	todo.RequeueWithin(done.RetryAfter)
	if todo.RequeueAfter > 0 {
		w.wake = w.at.Add(todo.RequeueAfter)
	}
}

// write is the server.
func (w *world) write(a *action.Action) error {
	what := string(a.Verb) + " " + a.Target()
	if a.Verb == w.refused {
		require.NoError(w, w.tries.Refused(what, w.at)) // G9
		return apierrors.NewForbidden(schema.GroupResource{}, "it", errKilled)
	}
	w.tries.Taken(what)
	w.dirty = true
	pod, isPod := a.Object.(*corev1.Pod)
	switch {
	case a.Verb == action.Create:
		w.create(pod.DeepCopy())
	case a.Verb == action.Delete && !isPod:
		ttl := time.Duration(*w.job.Spec.CompletionPolicy.TTLSecondsAfterFinished) * time.Second
		require.False(w, w.at.Before(w.job.Status.CompletionTime.Add(ttl)), "the job is deleted too early (I-BCJ-5)")
		w.job = nil
	case a.Verb == action.Delete:
		w.judgeEnded(w.pods[pod.Name])
		require.False(w, w.calmed[pod.Name] && w.job.Status.Phase != v1beta1.PhaseFailed, "it was created for nothing (G11)")
		w.remove(pod.Name)
	case a.Verb == action.PatchSpec:
		pod = w.pods[pod.Name].DeepCopy()
		require.Nil(w, pod.Spec.ActiveDeadlineSeconds, "it changes nothing (G2)")
		pod.Spec.ActiveDeadlineSeconds = new(int64(1))
		w.pods[pod.Name] = pod
	case a.Verb == action.PatchMetadata:
		w.job = w.job.DeepCopy()
		w.job.Generation++
		w.job.Spec.Paused = true
		metadata := a.Patches[0].Body["metadata"].(map[string]any)
		known := metadata["annotations"].(map[string]any)[v1beta1.AcknowledgedFailuresAnnotation].(string)
		require.NotEqual(w, w.job.Annotations[v1beta1.AcknowledgedFailuresAnnotation], known, "it changes nothing (G2)")
		w.job.Annotations = map[string]string{v1beta1.AcknowledgedFailuresAnnotation: known}
	default:
		require.Fail(w, "an unknown write", "%s", a)
	}
	return nil
}

// judgeEnded holds that what has ended is kept, but for a failure that is ignored, some time after it.
func (w *world) judgeEnded(o *corev1.Pod) {
	if ended(o) {
		require.Equal(w, ignored, stateOf(o, rulesOf(w.job)), "what has ended is kept")
		require.False(w, w.at.Before(endOf(o).Add(RetryDelay)), "it is tried again too early")
	}
}

// create judges a new pod: I-BCJ-1, I-BCJ-2, and that no node runs it twice with success.
func (w *world) create(pod *corev1.Pod) {
	name := eligibility.NodeOf(pod)
	n, there := w.nodes[name]
	require.True(w, there && n.ShouldRun, "the node takes no pod")
	require.False(w, w.counted[n.UID], "the node has succeeded")
	require.False(w, w.job.Spec.Paused, "the job is paused")
	runs := 1
	for _, o := range w.pods {
		goesOn := o.Status.Phase != corev1.PodFailed || o.DeletionTimestamp != nil
		require.False(w, eligibility.NodeOf(o) == name && goesOn, "the node has a pod (I-BCJ-1)")
		_, known := w.nodes[eligibility.NodeOf(o)]
		if s := stateOf(o, rulesOf(w.job)); s == active || s == failed && known && !ended(o) {
			runs++
		}
	}
	require.LessOrEqual(w, runs, w.limit(), "too many pods run (I-BCJ-2)")
	pod.UID, pod.CreationTimestamp, pod.Status.Phase = w.uid(), metav1.NewTime(w.at), corev1.PodPending
	w.pods[pod.Name] = pod
	if w.calm {
		w.calmed[pod.Name] = true
		require.LessOrEqual(w, len(w.calmed), len(w.nodes), "creations have no end (G11)")
	}
}

// limit is what parallelism allows at most: all nodes may be desired.
func (w *world) limit() int {
	if w.job.Spec.Parallelism == nil {
		return 100
	}
	places := map[string]bool{}
	for name := range w.nodes {
		places[name] = true
	}
	for _, o := range w.pods {
		places[eligibility.NodeOf(o)] = true
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(w.job.Spec.Parallelism, len(places), true)
	require.NoError(w, err)
	return n
}

// recount counts nodes by what their pods are.
func (w *world) recount() [3]int32 {
	byNode := map[string]int{}
	for _, o := range w.pods {
		byNode[eligibility.NodeOf(o)]++
	}
	var recount [3]int32
	for _, o := range w.pods {
		if s := stateOf(o, rulesOf(w.job)); s < leaving {
			recount[s]++
		}
	}
	for name, n := range w.nodes {
		if w.counted[n.UID] && byNode[name] == 0 {
			recount[succeeded]++
		}
	}
	return recount
}

// report judges a status: I-BCJ-3, I-BCJ-4 and I-BCJ-5.
func (w *world) report(status v1beta1.BroadcastJobStatus, recount [3]int32, counted map[types.UID]bool) {
	if w.ended != nil {
		require.NotEqual(w, w.job.Status.ObservedGeneration, status.ObservedGeneration, "an ended job says the same again")
		w.ended.ObservedGeneration = status.ObservedGeneration
		require.Equal(w, *w.ended, status, "an ended job says something new (I-BCJ-4)")
		w.job = w.job.DeepCopy()
		w.job.Status = status
		return
	}
	if assert.ObjectsAreEqual(w.job.Status, status) {
		return
	}
	w.job, w.dirty = w.job.DeepCopy(), true
	w.job.Status = status
	if status.Phase == v1beta1.PhaseFailed {
		recount[failed], recount[active] = recount[failed]+recount[active], 0
	}
	for i := range status.Failures {
		f := &status.Failures[i]
		require.False(w, f.Reason != FailureGivenUp && w.deleted[f.Pod], "pod %s was deleted and has not failed", f.Pod)
	}
	told := [3]int32{succeeded: status.Succeeded, failed: status.Failed, active: status.Active}
	require.Equal(w, recount, told, "numbers differ from what is there (I-BCJ-3)")
	maps.Copy(w.counted, counted)
	if status.CompletionTime != nil {
		w.ended = &status
		require.Len(w, status.Conditions, 1)
	}
}

// successes are the nodes with a pod that has succeeded.
func (w *world) successes() map[types.UID]bool {
	all := map[types.UID]bool{}
	for _, o := range w.pods {
		if n, there := w.nodes[eligibility.NodeOf(o)]; there && o.Status.Phase == corev1.PodSucceeded {
			all[n.UID] = true
		}
	}
	return all
}

// kubelet brings a pod forward.
func (w *world) kubelet(name string) {
	o := w.pods[name].DeepCopy()
	n, there := w.nodes[eligibility.NodeOf(o)]
	switch {
	case o.DeletionTimestamp != nil && ended(o):
		w.remove(name)
		return
	case !there || ended(o):
		return
	case o.DeletionTimestamp != nil:
		w.lastPhase(o)
	case o.Status.Phase == corev1.PodPending:
		o.Spec.NodeName, o.Status.Phase = n.Name, corev1.PodRunning
	case stopped(o):
		o.Status.Phase = corev1.PodFailed
	case w.IntN(3) > 0 || w.calm:
		o.Status.Phase = corev1.PodSucceeded
	case o.Spec.RestartPolicy == corev1.RestartPolicyOnFailure:
		restarted(restarts(o) + 1)(o)
	case w.IntN(2) == 0:
		o.Status.Phase = corev1.PodFailed
		o.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.at)}}
	default:
		exited(int32(1+w.IntN(4)), now.Sub(w.at))(o) //nolint:gosec // it is small
	}
	w.pods[name], w.dirty = o, true
}

// lastPhase is what the kubelet reports of a deleted pod before it goes: its containers were killed, or one of them has
// handled the signal.
func (w *world) lastPhase(o *corev1.Pod) {
	if w.IntN(8) == 0 {
		o.Status.Phase = corev1.PodSucceeded
		return
	}
	exited(143, now.Sub(w.at))(o)
	if w.IntN(2) == 0 {
		o.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.at)}}
	}
}

// remove deletes a pod as the server does: at once if it has ended or is leaving, else it begins to leave.
func (w *world) remove(name string) {
	o, there := w.pods[name]
	if !there {
		return
	}
	w.dirty = true
	if ended(o) || o.DeletionTimestamp != nil || o.Spec.NodeName == "" {
		delete(w.pods, name)
		return
	}
	o = o.DeepCopy()
	o.DeletionTimestamp, o.DeletionGracePeriodSeconds = new(metav1.NewTime(w.at.Add(30*time.Second))), new(int64(30))
	w.pods[name] = o
	// A pod that was restarted too often has failed while it runs, and the operator deletes it for that.
	w.deleted[name] = w.job == nil || o.Spec.RestartPolicy != corev1.RestartPolicyOnFailure || restarts(o) <= w.job.Spec.FailurePolicy.RestartLimit
}

// collect removes the pods of nodes that are gone, as the cluster's garbage collector does.
func (w *world) collect() {
	for name, o := range w.pods {
		if _, there := w.nodes[eligibility.NodeOf(o)]; !there {
			delete(w.pods, name)
			w.dirty = true
		}
	}
}

func (w *world) disturb() {
	names, pods := slices.Sorted(maps.Keys(w.nodes)), slices.Sorted(maps.Keys(w.pods))
	switch w.IntN(12) {
	case 0:
		w.addNode()
	case 1:
		if len(names) > 0 {
			delete(w.nodes, names[w.IntN(len(names))])
			w.dirty = true
		}
	case 2, 3:
		if len(names) > 0 {
			n := w.nodes[names[w.IntN(len(names))]]
			n.Verdict = []eligibility.Verdict{{ShouldRun: true, ShouldContinue: true}, {ShouldContinue: true}, {}}[w.IntN(3)]
			w.nodes[n.Name], w.dirty = n, true
		}
	case 4:
		if len(pods) > 0 {
			w.remove(pods[w.IntN(len(pods))])
		}
	case 5:
		w.edit(func(spec *v1beta1.BroadcastJobSpec) { spec.Parallelism = new(intstr.FromInt(w.IntN(4))) })
	case 6:
		w.edit(func(spec *v1beta1.BroadcastJobSpec) { spec.Paused = w.IntN(2) == 0 })
	case 7:
		w.refused = []action.Verb{action.Create, action.Delete, action.PatchSpec, action.PatchMetadata, "", ""}[w.IntN(6)]
	case 8:
		w.collect()
	}
}

func (w *world) edit(change func(*v1beta1.BroadcastJobSpec)) {
	if w.job == nil {
		return
	}
	w.job = w.job.DeepCopy()
	w.job.Generation++
	w.tries, w.dirty = simulate.Tries{}, true // an edit cuts pauses short
	change(&w.job.Spec)
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
