package cloneset_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/simnodes"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
	"github.com/flotilla-project/flotilla/core/testing/testenv/faults"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// An operator that is killed in the middle of whatever it does leaves a world from which the next one
// arrives where an undisturbed one does, with the same pods and within the same limits.
func TestKilledOperatorsAreSucceeded(t *testing.T) {
	givenNodes(t, simnodes.Options{Bind: true})
	var undisturbed []string
	require.True(t, t.Run("undisturbed", func(t *testing.T) { undisturbed = threeRollouts(t) }))
	require.True(t, t.Run("killed", func(t *testing.T) {
		assert.Equal(t, undisturbed, threeRollouts(t, 1, 2, 4))
	}))
}

// threeRollouts are a scale-up, an update in place and one by recreation, and what each of them ends
// with. During each of them operators are killed, one after each of the numbers of writes.
func threeRollouts(t *testing.T, killAfter ...int64) (ends []string) {
	t.Helper()
	const replicas, maxUnavailable = 4, 2
	c := env.Client(t)
	set := newSet(env.Namespace(t), replicas, v1beta1.InPlaceIfPossible, maxUnavailable)
	rollout := func(name string, ready int, begin func()) {
		history := faults.Record(t, env, set.Namespace)
		begin()
		for _, writes := range killAfter {
			require.True(t, t.Run(fmt.Sprintf("%s killed after write %d", name, writes), func(t *testing.T) {
				killed(t, set.Namespace, writes)
			}))
		}
		require.True(t, t.Run(name, func(t *testing.T) {
			startController(t, set.Namespace)
			settles(t, c, set)
		}))
		history.Replay(t, func(pods []*corev1.Pod) {
			active, available := countPods(pods)
			assert.LessOrEqual(t, active, replicas)
			assert.GreaterOrEqual(t, available, ready)
		})
		ends = append(ends, end(t, set))
	}
	rollout("scale-up", 0, func() { require.NoError(t, c.Create(t.Context(), set)) })
	before := testenv.Identities(env.Pods(t, set.Namespace))
	rollout("in place", replicas-maxUnavailable, func() { edit(t, c, set, image("app:2")) })
	assert.Equal(t, before, testenv.Identities(env.Pods(t, set.Namespace)))
	rollout("recreation", replicas-maxUnavailable, func() { edit(t, c, set, argument("new")) })
	return ends
}

// killed runs an operator whose requests all fail from its n-th write on, and returns when it has
// made that one.
func killed(t *testing.T, namespace string, n int64) {
	t.Helper()
	send, dead := faults.Kill(n)
	startControllerOver(t, namespace, send)
	await.Receive(t, dead, "the operator did not come to write %d", n)
}

// Writes that are refused, that fail, and that are done though their answer is lost, delay a rollout
// and change nothing else: no pod too many at any time, and in the end no write at all.
func TestFailingRequestsDelayOnly(t *testing.T) {
	const replicas, maxUnavailable, maxSurge = 5, 2, 1
	givenNodes(t, simnodes.Options{Bind: true})
	c := env.Client(t)
	set := newSet(env.Namespace(t), replicas, v1beta1.InPlaceIfPossible, maxUnavailable)
	set.Spec.UpdateStrategy.RollingUpdate.MaxSurge = new(intstr.FromInt32(maxSurge))
	history := faults.Record(t, env, set.Namespace)
	server := faults.NewShaky(1)
	startControllerOver(t, set.Namespace, server.Send)
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set)
	history.Replay(t, atMost(t, replicas))
	history = faults.Record(t, env, set.Namespace)
	for _, next := range []func(*v1beta1.CloneSet){image("app:2"), argument("new")} {
		edit(t, c, set, next)
		settles(t, c, set)
	}
	for _, f := range []faults.Fault{faults.Conflict, faults.TooMany, faults.Failure, faults.AnswerLost} {
		assert.Positive(t, server.Met()[f], f)
	}
	history.Replay(t, atMost(t, replicas+maxSurge))
	assertWanted(t, set)
	assertCalm(t, c, set)
}

func atMost(t *testing.T, limit int) func([]*corev1.Pod) {
	t.Helper()
	return func(pods []*corev1.Pod) {
		active, _ := countPods(pods)
		assert.LessOrEqual(t, active, limit)
	}
}

// Watches that break in the middle of an event, and whose place in history the server has forgotten,
// lose nothing.
func TestBrokenWatchesLoseNothing(t *testing.T) {
	const replicas, maxUnavailable = 4, 1
	givenNodes(t, simnodes.Options{Bind: true})
	c := env.Client(t)
	set := newSet(env.Namespace(t), replicas, v1beta1.InPlaceIfPossible, maxUnavailable)
	require.NoError(t, c.Create(t.Context(), set))
	send, refused := faults.BreakPodWatches(20_000)
	startControllerOver(t, set.Namespace, send)
	settles(t, c, set)
	before := testenv.Identities(env.Pods(t, set.Namespace))
	history := faults.Record(t, env, set.Namespace)
	edit(t, c, set, image("app:2"))
	settles(t, c, set)
	history.Replay(t, func(pods []*corev1.Pod) {
		_, available := countPods(pods)
		assert.GreaterOrEqual(t, available, replicas-maxUnavailable)
	})
	assert.Positive(t, refused(), "no watch was broken and refused")
	assert.Equal(t, before, testenv.Identities(env.Pods(t, set.Namespace)))
	assertWanted(t, set)
}

// Others delete, orphan, relabel and hold pods during a rollout. What they do is repaired or
// respected, and the set gets what it wants all the same.
func TestForeignWritersAreRepairedOrRespected(t *testing.T) {
	const finalizer = "example.com/hold"
	givenNodes(t, simnodes.Options{Bind: true, ReadyDelay: 100 * time.Millisecond})
	c := env.Client(t)
	set := newSet(env.Namespace(t), 6, v1beta1.InPlaceIfPossible, 1)
	startController(t, set.Namespace)
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set)
	edit(t, c, set, image("app:2"))
	eventually(t, func(collect *assert.CollectT) {
		assert.Positive(collect, countImages(env.Pods(t, set.Namespace))["app:2"])
	})

	pods := env.Pods(t, set.Namespace)
	deleted, orphaned, relabelled, held := &pods[0], &pods[1], &pods[2], &pods[3]
	require.NoError(t, c.Delete(t.Context(), deleted))
	change(t, c, orphaned, func(o *corev1.Pod) { o.OwnerReferences = nil })
	change(t, c, relabelled, func(o *corev1.Pod) { o.Labels["app"] = "other" })
	change(t, c, held, func(o *corev1.Pod) { o.Finalizers = append(o.Finalizers, finalizer) })
	require.NoError(t, c.Delete(t.Context(), held))
	assert.Positive(t, countImages(env.Pods(t, set.Namespace))["app:1"], "the rollout was over")

	settles(t, c, set)
	assertWanted(t, set)
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(held), held), "nobody else may take the finalizer off")
	assert.NotNil(t, held.DeletionTimestamp)
	change(t, c, held, func(o *corev1.Pod) { o.Finalizers = nil })
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(relabelled), relabelled))
	assert.Nil(t, metav1.GetControllerOf(relabelled), "what the selector does not match is released")
	assert.Nil(t, relabelled.DeletionTimestamp)
	eventually(t, func(collect *assert.CollectT) {
		for _, o := range []*corev1.Pod{deleted, held} {
			assert.True(collect, apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(o), &corev1.Pod{})), o.Name)
		}
	})
	settles(t, c, set)
	assertWanted(t, set)
	assertCalm(t, c, set)
}

// change writes the pod whatever version others have made of it.
func change(t *testing.T, c client.Client, o *corev1.Pod, edit func(*corev1.Pod)) {
	t.Helper()
	before := o.DeepCopy()
	edit(o)
	require.NoError(t, c.Patch(t.Context(), o, client.MergeFrom(before)))
}

// startControllerOver starts the controller with all its requests made by send.
func startControllerOver(t *testing.T, namespace string, send faults.Send) {
	t.Helper()
	startControllerIn(t, faults.Over(env, send), namespace)
}

// argument changes what only a new pod can have.
func argument(text string) func(*v1beta1.CloneSet) {
	return func(set *v1beta1.CloneSet) { set.Spec.Template.Spec.Containers[0].Args = []string{text} }
}

// countPods counts the pods that CloneSet web controls.
func countPods(pods []*corev1.Pod) (active, available int) {
	for _, o := range pods {
		if metav1.GetControllerOf(o) == nil {
			continue
		}
		state := podstate.Of(o, time.Now(), 0)
		if state.Active {
			active++
		}
		if state.Available {
			available++
		}
	}
	return active, available
}

func countImages(pods []corev1.Pod) map[string]int {
	count := map[string]int{}
	for i := range pods {
		count[pods[i].Spec.Containers[0].Image]++
	}
	return count
}

// end is what a set ends with, without what differs from run to run.
func end(t *testing.T, set *v1beta1.CloneSet) string {
	t.Helper()
	status := set.Status.DeepCopy()
	status.Conditions = nil
	text, err := json.Marshal(status)
	require.NoError(t, err)
	lines := []string{string(text)}
	for _, o := range env.Pods(t, set.Namespace) {
		lines = append(lines, fmt.Sprintf("%s %s %s restarts %d", o.Labels[contract.RevisionLabel], o.Spec.Containers[0].Image,
			o.Labels[contract.LifecycleStateLabel], o.Status.ContainerStatuses[0].RestartCount))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// assertWanted demands that the pods of the set, and no others, are as its template says.
func assertWanted(t *testing.T, set *v1beta1.CloneSet) {
	t.Helper()
	mine := slices.DeleteFunc(env.Pods(t, set.Namespace), func(o corev1.Pod) bool { return !metav1.IsControlledBy(&o, set) })
	want := set.Spec.Template.Spec.Containers[0]
	assert.Len(t, mine, int(*set.Spec.Replicas))
	for i := range mine {
		assert.Equal(t, want.Image, mine[i].Spec.Containers[0].Image)
		assert.Equal(t, want.Args, mine[i].Spec.Containers[0].Args)
		assert.Equal(t, set.Status.UpdateRevision, mine[i].Labels[contract.RevisionLabel])
	}
}

// assertCalm demands that another pass, forced by an edit that concerns no pod, writes the status only.
func assertCalm(t *testing.T, c client.Client, set *v1beta1.CloneSet) {
	t.Helper()
	for limit := range int32(2) { // what the first pass still finds to do belongs to the rollout
		audit := env.Audit(t)
		edit(t, c, set, func(s *v1beta1.CloneSet) { s.Spec.RevisionHistoryLimit = new(20 + limit) })
		settles(t, c, set)
		if limit > 0 {
			assert.Equal(t, []string{"patch clonesets/status"}, audit.Kinds(t, userAgent, set.Namespace))
		}
	}
}
