package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/workloads/conditions"
	"github.com/flotilla-project/flotilla/core/workloads/revision"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

func TestStatusCountsNodes(t *testing.T) {
	// n1 updated, n2 old, n3 too young, n4 none, n5 not ready, n6 must not have one and n7 neither, n8 has two, n9 one
	// that terminates; n10 is gone.
	w := given(t, 9, minReady(10), pausing(true)).
		node("n6", tainted(corev1.TaintEffectNoExecute)).node("n7", tainted(corev1.TaintEffectNoSchedule)).
		updated("n1").old("n2").updated("n3", young).updated("n5", down).updated("n6").
		updated("n8", down).old("n8", created(2*time.Hour)).updated("n9", terminating).updated("n10")
	s := w.status()
	assert.EqualValues(t, 7, s.DesiredNumberScheduled)
	assert.EqualValues(t, 6, s.CurrentNumberScheduled, "all but n4")
	assert.EqualValues(t, 1, s.NumberMisscheduled, "n6")
	assert.EqualValues(t, 5, s.NumberReady, "n1, n2, n3, n8, n9")
	assert.EqualValues(t, 4, s.NumberAvailable)
	assert.EqualValues(t, 3, s.NumberUnavailable)
	assert.EqualValues(t, 4, s.UpdatedNumberScheduled, "n1, n3, n5, n9: of n8 the older one counts")
	assert.EqualValues(t, 2, s.ObservedGeneration)
	assert.Equal(t, revision.Hash(w.revisions[1]), s.UpdateRevision)
	assert.Equal(t, now, s.UpdateStartTime.Time)
	assert.EqualValues(t, 0, *s.CollisionCount)

	w.set.Status = s
	w.set.Status.UpdateStartTime = &metav1.Time{Time: now.Add(-time.Hour)}
	assert.Equal(t, now.Add(-time.Hour), w.status().UpdateStartTime.Time, "an update begins once")
}

// Kubernetes taints a node that it cannot reach: it gets no new pod, and its old one is in the way of an update.
func TestUnreadyNodesCountWhereverTheyHaveOrShouldHaveAPod(t *testing.T) {
	unreachable := tainted(corev1.TaintEffectNoSchedule)
	w := given(t, 0, unready(v1beta1.SkipUnreadyNodes)).
		node("n1").node("n2", notReady(time.Hour)).node("n3", notReady(time.Hour), unreachable).node("n4", notReady(time.Hour), unreachable).
		updated("n1").updated("n2", down).old("n3", down)
	s := w.status()
	assert.EqualValues(t, 2, s.DesiredNumberScheduled, "n1 and n2")
	assert.EqualValues(t, 1, s.NumberMisscheduled, "n3")
	assert.EqualValues(t, 2, s.NumberUnreadyNodes, "n2 and n3, which has a pod")
	assert.EqualValues(t, 2, s.NumberSkippedNodes)
}

// It plays no part that a hook holds a pod, and it does that an update in place does.
func TestWhatIsAvailableInTheStatus(t *testing.T) {
	assert.EqualValues(t, 1, given(t, 1, hooked).updated("n1", preparing, hookOn).status().NumberAvailable)
	assert.EqualValues(t, 0, given(t, 1).updated("n1", gen.Condition(contract.InPlaceUpdateReady, corev1.ConditionFalse, now)).status().NumberAvailable)
}

func TestConditions(t *testing.T) {
	long := gen.NotReady(now.Add(-10 * time.Minute))
	cases := []struct {
		name    string
		given   *world
		reason  string
		message string
		summary string // Ready or Reconciling or Stalled
	}{
		{"done", given(t, 2).updated("n1 n2"), v1beta1.ReasonComplete, "all pods are up to date and available", conditions.Ready},
		{"no nodes", given(t, 0), v1beta1.ReasonNoEligibleNodes, "no node matches", conditions.Ready},
		{"first pods", given(t, 2), v1beta1.ReasonRollingOut, "2 nodes have no available pod, 0 nodes are not updated yet", conditions.Reconciling},
		{"an update", given(t, 2).old("n1").updated("n2", down), v1beta1.ReasonRollingOut, "node n1 waits for its update (maxUnavailable 1); not available yet: n2", conditions.Reconciling},
		{"nodes that are down for long", given(t, 2).old("n1").updated("n2", long), v1beta1.ReasonBlockedByUnavailableNodes, "not available yet: n2", conditions.Reconciling},
		{"fewer than may be down", given(t, 4, maxUnavailable("2")).old("n1 n2").updated("n3", long).updated("n4", down), v1beta1.ReasonRollingOut, "not available yet: n3, n4", conditions.Reconciling},
		{"a hook", given(t, 2, hooked).old("n1", hookOn).old("n2", hookOn, preparing), v1beta1.ReasonBlockedByPreDeleteHook, "the preDelete hook holds web-n2-1", conditions.Reconciling},
		{"a pause", given(t, 2, pausing(true)).old("n1").updated("n2"), v1beta1.ReasonPaused, "1 pod is not updated", conditions.Ready},
		{"the partition", given(t, 2, partition("1")).old("n1").updated("n2"), v1beta1.ReasonPartitionReached, "keep 1 nodes at an older revision", conditions.Ready},
		{"the selector", given(t, 2, onNodes("n2")).old("n1").updated("n2"), v1beta1.ReasonPartitionReached, "keep 1 nodes", conditions.Ready},
		{"nodes without a pod", given(t, 2, partition("1"), partitionedScaling).updated("n1"), v1beta1.ReasonPartitionReached, "and 1 without a pod", conditions.Ready},
		{"OnDelete", given(t, 2, deleting).old("n1").updated("n2"), v1beta1.ReasonOnDelete, "1 pods stay", conditions.Ready},
		{"nonsense", given(t, 2, partition("abc")).updated("n1 n2"), v1beta1.ReasonInvalidSpec, "partition", conditions.Stalled},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			list := c.given.status().Conditions
			progressing := conditions.Get(list, v1beta1.DaemonSetProgressing)
			require.NotNil(t, progressing)
			assert.Equal(t, c.reason, progressing.Reason)
			assert.Contains(t, progressing.Message, c.message)
			summary := conditions.Get(list, c.summary)
			require.NotNil(t, summary, "%v", list)
			assert.Equal(t, corev1.ConditionTrue, summary.Status, "%v", list)
		})
	}
}

// A set is Ready though nodes that the policy leaves out of account have no pod in service, whatever is to happen there.
func TestNodesThatAreLeftOutOfAccountDoNotKeepASetFromReady(t *testing.T) {
	skipping := func(options ...setOption) *world {
		return given(t, 3, append(options, unready(v1beta1.SkipUnreadyNodes))...).node("n3", notReady(time.Hour)).updated("n1 n2")
	}
	held := gen.Condition(contract.InPlaceUpdateReady, corev1.ConditionFalse, now)
	for name, w := range map[string]*world{
		"a pod that is down":          skipping().updated("n3", down),
		"an old one that terminates":  skipping().old("n3", terminating, down),
		"an old one":                  skipping().old("n3", down),
		"one in the midst of its way": skipping(inPlace).updated("n3", down, held),
		"one that a hook holds":       skipping(hooked).old("n3", down, preparing, hookOn),
		"none":                        skipping(),
	} {
		t.Run(name, func(t *testing.T) {
			s := w.status()
			assert.EqualValues(t, 1, s.NumberSkippedNodes)
			assert.Equal(t, corev1.ConditionTrue, conditions.Get(s.Conditions, conditions.Ready).Status, "%v", s.Conditions)
			assert.Contains(t, conditions.Get(s.Conditions, v1beta1.DaemonSetProgressing).Message, "1 NotReady nodes are skipped")
			assert.Equal(t, corev1.ConditionFalse, conditions.Get(s.Conditions, v1beta1.DaemonSetAvailable).Status)

			unready(v1beta1.CountUnreadyNodes)(w.set)
			assert.Equal(t, corev1.ConditionFalse, conditions.Get(w.status().Conditions, conditions.Ready).Status)
		})
	}
}

func TestFailuresAreShown(t *testing.T) {
	w := given(t, 2).updated("n1")
	s := Status(w.snapshot(), w.plan(), action.Failures{ScaleError: "quota", UpdateError: "webhook"})
	for _, c := range []string{v1beta1.DaemonSetFailedCreatePod, v1beta1.DaemonSetFailedUpdatePod} {
		assert.Equal(t, corev1.ConditionTrue, conditions.Get(s.Conditions, c).Status)
	}
	w.set.Status = s
	s = w.status()
	for _, c := range []string{v1beta1.DaemonSetFailedCreatePod, v1beta1.DaemonSetFailedUpdatePod} {
		assert.Equal(t, v1beta1.ReasonRecovered, conditions.Get(s.Conditions, c).Reason)
	}
}

func TestUsersAreToldOnce(t *testing.T) {
	w := given(t, 2).old("n1").updated("n2", gen.NotReady(now.Add(-10*time.Minute)))
	require.Len(t, w.plan().Notices, 1)
	assert.Equal(t, v1beta1.ReasonBlockedByUnavailableNodes, w.plan().Notices[0].Reason)
	w.set.Status.Conditions = []workload.Condition{{Type: v1beta1.DaemonSetProgressing, Reason: v1beta1.ReasonBlockedByUnavailableNodes}}
	assert.Empty(t, w.plan().Notices)
	assert.Empty(t, given(t, 2).old("n1").updated("n2", down).plan().Notices, "that a pod takes its time is not worth a word")
}

// The scheduler knows why a pod waits, and tells it of a pod that nobody looks at. The set tells it once, with the node.
func TestUsersAreToldOfPodsThatFindNoRoom(t *testing.T) {
	noRoom := gen.Change(func(o *corev1.Pod) {
		unassigned(o)
		gen.Unschedulable(corev1.PodReasonUnschedulable, now)(o)
	})
	w := given(t, 2).updated("n1").updated("n2", noRoom)
	require.Len(t, w.plan().Notices, 1)
	n := w.plan().Notices[0]
	assert.Equal(t, []string{corev1.EventTypeWarning, EventPlacementFailed}, []string{n.Type, n.Reason})
	assert.Equal(t, "Pod web-n2-1 cannot be scheduled to node n2: 0/3 nodes are available", n.Note)
	assert.Equal(t, "web-n2-1", n.Related.GetName())
	assert.True(t, n.WithStatus)

	w.set.Status = w.status()
	assert.Empty(t, w.plan().Notices)
	gated := gen.Unschedulable(corev1.PodReasonSchedulingGated, now)
	assert.Empty(t, given(t, 1).updated("n1", unassigned, gated).plan().Notices, "somebody holds it")
	assert.Empty(t, given(t, 1).node("n1", tainted(corev1.TaintEffectNoSchedule)).updated("n1", noRoom).plan().Notices, "nobody waits for it")
}

// A pod that fails again and again is told of with the moment at which it is tried again.
func TestUsersAreToldWhenAFailedPodIsReplaced(t *testing.T) {
	w := given(t, 2).updated("n1").updated("n2", failed).retryLater("n2")
	require.Len(t, w.plan().Notices, 1)
	n := w.plan().Notices[0]
	assert.Equal(t, []string{corev1.EventTypeWarning, EventPodFailed}, []string{n.Type, n.Reason})
	assert.Equal(t, "Pod web-n2-1 failed: pods on node n2 fail repeatedly; the next one is created at 2026-01-02T12:10:00Z", n.Note)
	w.set.Status = w.status()
	assert.Empty(t, w.plan().Notices)
}

func TestNextLooks(t *testing.T) {
	assert.Equal(t, 8*time.Second, given(t, 1, minReady(10)).updated("n1", young).plan().RequeueAfter, "when minReadySeconds end")
	assert.Equal(t, 50*time.Second, given(t, 2).old("n1").updated("n2", down).plan().RequeueAfter, "when a wait is worth a word")
	assert.Zero(t, given(t, 2).updated("n1 n2").plan().RequeueAfter)
}
