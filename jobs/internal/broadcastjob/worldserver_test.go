package broadcastjob

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/broadcastjob/plan"
)

func conflict(name string) error {
	return apierrors.NewConflict(schema.GroupResource{}, name, errors.New("it has changed"))
}

// write is the server.
func (w *world) write(a *action.Action) error {
	what := string(a.Verb) + " " + a.Target()
	if a.Verb == w.refused {
		require.NoError(w, w.tries.Refused(what, w.at)) // G9
		return apierrors.NewForbidden(schema.GroupResource{}, "it", errKilled)
	}
	w.tries.Taken(what)
	w.wrote = true
	switch o := a.Object.(type) {
	case *v1beta1.BroadcastJob:
		return w.writeJob(a, o)
	case *corev1.Pod:
		return w.writePod(a, o)
	}
	require.Fail(w, "an unknown write", "%s", a)
	return nil
}

func (w *world) writeJob(a *action.Action, o *v1beta1.BroadcastJob) error {
	if w.job == nil || w.job.ResourceVersion != o.ResourceVersion {
		return conflict(o.Name)
	}
	if a.Verb == action.Delete {
		ttl := time.Duration(*w.job.Spec.CompletionPolicy.TTLSecondsAfterFinished) * time.Second
		require.False(w, w.at.Before(w.job.Status.CompletionTime.Add(ttl)), "the job is deleted too early (I-BCJ-5)")
		w.job = nil
		return nil
	}
	require.Equal(w, action.PatchMetadata, a.Verb)
	next := &v1beta1.BroadcastJob{}
	w.patch(a, w.job, next)
	require.True(w, next.Spec.Paused)
	next.Generation++
	w.stamp(next)
	w.job = next
	return nil
}

func (w *world) writePod(a *action.Action, o *corev1.Pod) error {
	key := client.ObjectKeyFromObject(o).String()
	old := w.pods[key]
	switch {
	case a.Verb == action.Create:
		require.Nil(w, old, "a name is used twice")
		w.create(key, o.DeepCopy())
		return nil
	case old == nil:
		return apierrors.NewNotFound(schema.GroupResource{}, o.Name)
	case old.UID != o.UID || old.ResourceVersion != o.ResourceVersion && (len(a.Patches) == 0 || !a.Patches[0].AnyVersion):
		return conflict(o.Name)
	}
	require.Equal(w, w.looked.UID, w.owner[key], "a pod of others is written: %s", a)
	if a.Verb == action.Delete {
		w.judgeEnded(old)
		require.False(w, w.calmed[key] && w.job.Status.Phase != v1beta1.PhaseFailed, "it was created for nothing (G11)")
		w.remove(key)
		return nil
	}
	require.Equal(w, action.PatchSpec, a.Verb)
	next := &corev1.Pod{}
	w.patch(a, old, next)
	w.stamp(next)
	w.pods[key] = next
	return nil
}

// patch judges that a patch changes something (G2).
func (w *world) patch(a *action.Action, old, next client.Object) {
	require.Len(w, a.Patches, 1)
	body, err := json.Marshal(a.Patches[0].Body)
	require.NoError(w, err)
	before, err := json.Marshal(old)
	require.NoError(w, err)
	after, err := jsonpatch.MergePatch(before, body)
	require.NoError(w, err)
	require.NoError(w, json.Unmarshal(after, next))
	require.False(w, equality.Semantic.DeepEqual(old, next), "it changes nothing (G2): %s", a)
}

// judgeEnded holds that what has ended is kept, but for a failure that is ignored, some time after it.
func (w *world) judgeEnded(o *corev1.Pod) {
	if hasEnded(o) {
		require.Equal(w, isIgnored, countsAs(w.looked, o), "what has ended is kept")
		require.False(w, w.at.Before(endOf(o).Add(plan.RetryDelay)), "it is tried again too early")
	}
}

// create judges a new pod: I-BCJ-1, I-BCJ-2, and that no node runs it twice with success. The operator cannot know of what
// its caches do not show yet, but of its own pods it does.
func (w *world) create(key string, pod *corev1.Pod) {
	name := nodeOf(pod)
	n := w.shown.nodes[name]
	require.True(w, n != nil && takes(n), "the node takes no pod")
	require.False(w, w.looked.Spec.Paused, "the job is paused")
	require.True(w, metav1.IsControlledBy(pod, w.looked))
	require.Equal(w, string(w.looked.UID), pod.Labels[v1beta1.BroadcastJobUIDLabel], "the cache shows no such pod")
	if w.job != nil && w.looked.UID == w.job.UID {
		require.False(w, w.counted[n.UID], "the node has succeeded")
		runs := 1
		for _, o := range w.podsOf(w.pods, w.job) {
			goesOn := o.Status.Phase != corev1.PodFailed || o.DeletionTimestamp != nil
			require.False(w, nodeOf(o) == name && goesOn, "the node has a pod (I-BCJ-1)")
			s := countsAs(w.looked, o)
			if s == isActive || s == hasFailed && w.shown.nodes[nodeOf(o)] != nil && !hasEnded(o) {
				runs++
			}
		}
		require.LessOrEqual(w, runs, w.limit(), "too many pods run (I-BCJ-2)")
	}
	pod.CreationTimestamp, pod.Status.Phase = metav1.NewTime(w.at), corev1.PodPending
	w.stamp(pod)
	w.pods[key], w.owner[key] = pod, w.looked.UID
	if w.calm {
		w.calmed[key] = true
		require.LessOrEqual(w, len(w.calmed), len(w.nodes), "creations have no end (G11)")
	}
}

// limit is what parallelism allows at most: all nodes may be desired.
func (w *world) limit() int {
	if w.looked.Spec.Parallelism == nil {
		return 100
	}
	places := map[string]bool{}
	for name := range w.shown.nodes {
		places[name] = true
	}
	for _, o := range w.podsOf(w.shown.pods, w.looked) {
		places[nodeOf(o)] = true
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(w.looked.Spec.Parallelism, len(places), true)
	require.NoError(w, err)
	return n
}

// podsOf returns the pods of a job among all.
func (w *world) podsOf(all map[string]*corev1.Pod, job *v1beta1.BroadcastJob) (pods []*corev1.Pod) {
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if w.owner[key] == job.UID {
			pods = append(pods, all[key])
		}
	}
	return pods
}

// recount counts nodes by what their pods are, as far as the caches show them.
func (w *world) recount() (numbers [3]int32) {
	byNode := map[string]int{}
	for _, o := range w.podsOf(w.shown.pods, w.looked) {
		byNode[nodeOf(o)]++
		if s := countsAs(w.looked, o); s <= isActive {
			numbers[s]++
		}
	}
	for name, n := range w.shown.nodes {
		if w.counted[n.UID] && byNode[name] == 0 {
			numbers[hasSucceeded]++
		}
	}
	return numbers
}

// successes are the nodes with a pod that has succeeded, as far as the caches show them.
func (w *world) successes() map[types.UID]bool {
	all := map[types.UID]bool{}
	for _, o := range w.podsOf(w.shown.pods, w.looked) {
		if n := w.shown.nodes[nodeOf(o)]; n != nil && o.Status.Phase == corev1.PodSucceeded {
			all[n.UID] = true
		}
	}
	return all
}

// report writes a status, unless the job has changed since it was read, and judges it: I-BCJ-3, I-BCJ-4 and I-BCJ-5.
func (w *world) report(after *v1beta1.BroadcastJob, recount [3]int32, counted map[types.UID]bool) {
	if w.job == nil || w.job.ResourceVersion != after.ResourceVersion || equality.Semantic.DeepEqual(w.looked, after) {
		return
	}
	status := after.Status
	if w.ended != nil {
		require.NotEqual(w, w.job.Status.ObservedGeneration, status.ObservedGeneration, "an ended job says the same again")
		w.ended.ObservedGeneration = status.ObservedGeneration
		require.True(w, equality.Semantic.DeepEqual(*w.ended, status), "an ended job says something new (I-BCJ-4)")
	} else {
		if status.Phase == v1beta1.PhaseFailed {
			recount[hasFailed], recount[isActive] = recount[hasFailed]+recount[isActive], 0
		}
		for i := range status.Failures {
			f := &status.Failures[i]
			given := f.Reason == plan.FailureGivenUp
			require.False(w, !given && w.deleted[types.NamespacedName{Namespace: jobName.Namespace, Name: f.Pod}.String()], "pod %s was deleted and has not failed", f.Pod)
		}
		told := [3]int32{hasSucceeded: status.Succeeded, hasFailed: status.Failed, isActive: status.Active}
		require.Equal(w, recount, told, "numbers differ from what is there (I-BCJ-3)")
		maps.Copy(w.counted, counted)
	}
	if status.CompletionTime != nil && w.ended == nil {
		w.ended = status.DeepCopy()
		require.Len(w, status.Conditions, 1)
	}
	w.wrote = true
	w.changeJob(func(job *v1beta1.BroadcastJob) { job.Status = status })
}

// changeJob replaces the job by another version.
func (w *world) changeJob(change func(*v1beta1.BroadcastJob)) {
	w.job = w.job.DeepCopy()
	change(w.job)
	w.stamp(w.job)
}
