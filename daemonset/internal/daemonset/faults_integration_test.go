package daemonset_test

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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/simnodes"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
	"github.com/flotilla-project/flotilla/core/testing/testenv/faults"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

// An operator that is killed in the middle of whatever it does leaves a world from which the next one arrives where an
// undisturbed one does, with the same pods and within the same limits.
func TestKilledOperatorsAreSucceeded(t *testing.T) {
	givenNodes(t, simnodes.Options{})
	var undisturbed []string
	require.True(t, t.Run("undisturbed", func(t *testing.T) { undisturbed = threeRollouts(t) }))
	require.True(t, t.Run("killed", func(t *testing.T) {
		assert.Equal(t, undisturbed, threeRollouts(t, 1, 2, 3))
	}))
}

// threeRollouts are a first deployment, an update in place and one by recreation, and what each of them ends with.
// During each of them operators are killed, one after each of the numbers of writes.
func threeRollouts(t *testing.T, killAfter ...int64) (ends []string) {
	t.Helper()
	c := env.Client(t)
	set := newSet(env.Namespace(t), inPlace)
	rollout := func(name string, inService int, begin func()) {
		history := faults.Record(t, env, set.Namespace)
		begin()
		for _, writes := range killAfter {
			require.True(t, t.Run(fmt.Sprintf("%s killed after write %d", name, writes), func(t *testing.T) {
				killed(t, set.Namespace, writes)
			}))
		}
		require.True(t, t.Run(name, func(t *testing.T) {
			startController(t, env, set.Namespace)
			settles(t, c, set, nodeCount, nodeCount)
		}))
		assertInService(t, history, inService, 1)
		ends = append(ends, end(t, set))
	}
	rollout("creation", 0, func() { require.NoError(t, c.Create(t.Context(), set)) })
	before := testenv.Identities(env.Pods(t, set.Namespace))
	rollout("in place", nodeCount-1, func() { testenv.Edit(t, c, set, image("app:2")) })
	assert.Equal(t, before, testenv.Identities(env.Pods(t, set.Namespace)))
	rollout("recreation", nodeCount-1, func() { testenv.Edit(t, c, set, argument("new")) })
	return ends
}

// killed runs an operator whose requests all fail from its n-th write on, and returns when it has made that one.
func killed(t *testing.T, namespace string, n int64) {
	t.Helper()
	send, dead := faults.Kill(n)
	startController(t, faults.Over(env, send), namespace)
	await.Receive(t, dead, "the operator did not come to write %d", n)
}

// end is what a set ends with, without what differs from run to run.
func end(t *testing.T, set *v1beta1.DaemonSet) string {
	t.Helper()
	status := set.Status.DeepCopy()
	status.Conditions, status.UpdateStartTime = nil, nil
	text, err := json.Marshal(status)
	require.NoError(t, err)
	lines := []string{string(text)}
	for _, o := range env.Pods(t, set.Namespace) {
		lines = append(lines, fmt.Sprintf("%s %s %s restarts %d", o.Spec.NodeName, revisionOf(&o), o.Spec.Containers[0].Image,
			o.Status.ContainerStatuses[0].RestartCount))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// Writes that are refused, that fail, and that are done though their answer is lost, delay a rollout and change nothing
// else: no pod too many at any time, and in the end no write at all.
func TestFailingRequestsDelayOnly(t *testing.T) {
	givenNodes(t, simnodes.Options{})
	c := env.Client(t)
	set := newSet(env.Namespace(t), surge)
	history := faults.Record(t, env, set.Namespace)
	server := faults.NewShaky(1)
	startController(t, faults.Over(env, server.Send), set.Namespace)
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set, nodeCount, nodeCount)
	assertInService(t, history, 0, 1)
	history = faults.Record(t, env, set.Namespace)
	for _, next := range []change{image("app:2"), argument("new"), image("app:3")} {
		testenv.Edit(t, c, set, next)
		settles(t, c, set, nodeCount, nodeCount)
	}
	for _, f := range []faults.Fault{faults.Conflict, faults.TooMany, faults.Failure, faults.AnswerLost} {
		assert.Positive(t, server.Met()[f], f)
	}
	assertInService(t, history, nodeCount, 2)
	assertCalm(t, c, set)
}

// Watches that break in the middle of an event, and whose place in history the server has forgotten, lose nothing.
func TestBrokenWatchesLoseNothing(t *testing.T) {
	givenNodes(t, simnodes.Options{})
	c := env.Client(t)
	set := newSet(env.Namespace(t), inPlace)
	require.NoError(t, c.Create(t.Context(), set))
	send, refused := faults.BreakPodWatches(20_000)
	startController(t, faults.Over(env, send), set.Namespace)
	settles(t, c, set, nodeCount, nodeCount)
	before, history := testenv.Identities(env.Pods(t, set.Namespace)), faults.Record(t, env, set.Namespace)
	for _, name := range []string{"app:2", "app:3"} {
		testenv.Edit(t, c, set, image(name))
		settles(t, c, set, nodeCount, nodeCount)
	}
	assertInService(t, history, nodeCount-1, 1)
	assert.Positive(t, refused(), "no watch was broken and refused")
	assert.Equal(t, before, testenv.Identities(env.Pods(t, set.Namespace)))
}

// Others delete, orphan and relabel pods during a rollout. What they do is repaired or respected, and the set gets what
// it wants all the same.
func TestForeignWritersAreRepairedOrRespected(t *testing.T) {
	c, set := running(t, simnodes.Options{ReadyDelay: 100 * time.Millisecond}, inPlace)
	testenv.Edit(t, c, set, image("app:2"))
	pods := env.Pods(t, set.Namespace)
	deleted, orphaned, relabelled := &pods[0], &pods[1], &pods[2]
	require.NoError(t, c.Delete(t.Context(), deleted))
	patch := func(o *corev1.Pod, text string) {
		require.NoError(t, c.Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(text))))
	}
	patch(orphaned, `{"metadata":{"ownerReferences":null}}`)
	patch(relabelled, `{"metadata":{"labels":{"app":"other"}}}`)
	eventually(t, c, set, func(collect *assert.CollectT) {
		mine := slices.DeleteFunc(env.Pods(t, set.Namespace), func(o corev1.Pod) bool { return !metav1.IsControlledBy(&o, set) || o.DeletionTimestamp != nil })
		assert.Equal(collect, map[string]string{"sim-0": "app:2", "sim-1": "app:2", "sim-2": "app:2"}, images(mine))
		assert.Equal(collect, []int32{nodeCount, nodeCount}, []int32{set.Status.NumberAvailable, set.Status.UpdatedNumberScheduled})
	})
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(relabelled), relabelled))
	assert.Nil(t, metav1.GetControllerOf(relabelled), "what the selector does not match is released")
	assert.Nil(t, relabelled.DeletionTimestamp)
	require.NoError(t, c.Delete(t.Context(), relabelled))
	assertCalm(t, c, set)
}

// assertCalm demands that another pass, forced by an edit that concerns no pod, writes the status only.
func assertCalm(t *testing.T, c client.Client, set *v1beta1.DaemonSet) {
	t.Helper()
	for limit := range int32(2) { // what the first pass still finds to do belongs to the rollout
		audit := env.Audit(t)
		testenv.Edit(t, c, set, func(s *v1beta1.DaemonSet) { s.Spec.RevisionHistoryLimit = new(20 + limit) })
		settles(t, c, set, nodeCount, nodeCount)
		if limit > 0 {
			assert.Equal(t, []string{"patch daemonsets/status"}, audit.Kinds(t, userAgent, set.Namespace))
		}
	}
}
