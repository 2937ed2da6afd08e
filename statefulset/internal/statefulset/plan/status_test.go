package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/workloads/conditions"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

func condition(t *testing.T, w *world, kind string) workload.Condition {
	t.Helper()
	c := conditions.Get(w.status().Conditions, kind)
	require.NotNil(t, c, kind)
	return *c
}

func TestStatusCounts(t *testing.T) {
	w := given(t, 3, minReady(10)).old(span(0, 1)).updated(at(2), readySince(time.Second)).updated(at(3), terminating).old(at(4), unready)
	s := w.status()
	assert.Equal(t, [7]int32{5, 4, 3, 3, 1, 2, 1}, [7]int32{
		s.Replicas, s.ReadyReplicas, s.AvailableReplicas, s.CurrentReplicas, s.UpdatedReplicas, s.UpdatedReadyReplicas, s.UpdatedAvailableReplicas,
	})
	assert.Equal(t, w.revisions[0].Name, s.CurrentRevision)
	assert.Equal(t, w.revisions[1].Name, s.UpdateRevision)
	assert.Equal(t, int64(2), s.ObservedGeneration)
	assert.Equal(t, "app=web", s.LabelSelector)
	assert.Equal(t, int32(0), *s.CollisionCount)
}

// Three pods and partition 2, after the canary and after the end.
func TestAnUpdateIsCompleteWhenAllPodsAreUpdatedAndAvailable(t *testing.T) {
	canary := given(t, 3, partition(2)).old(span(0, 1)).updated(at(2)).status()
	assert.Equal(t, [4]int32{3, 3, 2, 1}, [4]int32{canary.Replicas, canary.ReadyReplicas, canary.CurrentReplicas, canary.UpdatedReplicas})
	assert.NotEqual(t, canary.CurrentRevision, canary.UpdateRevision)
	done := given(t, 3).updated(span(0, 2)).status()
	assert.Equal(t, [2]int32{3, 3}, [2]int32{done.CurrentReplicas, done.UpdatedReplicas})
	assert.Equal(t, done.CurrentRevision, done.UpdateRevision)
	for name, w := range map[string]*world{
		"OnDelete":           given(t, 3, onDeleteOnly()).updated(span(0, 2)),
		"one is too young":   given(t, 3, minReady(10)).updated(span(0, 1)).updated(at(2), readySince(time.Second)),
		"one is not ready":   given(t, 3).updated(span(0, 1)).updated(at(2), unready),
		"one is left over":   given(t, 2).updated(span(0, 2)),
		"one is missing":     given(t, 3).updated(span(0, 1)),
		"one is terminating": given(t, 3).updated(span(0, 1)).updated(at(2), terminating),
	} {
		assert.NotEqual(t, w.status().CurrentRevision, w.status().UpdateRevision, name)
	}
}

// Whoever scales to zero in the middle of a canary and back gets the canary back, and no more of it.
func TestTheCurrentRevisionStaysForAsLongAsThePartitionKeepsPods(t *testing.T) {
	for name, w := range map[string]*world{
		"no pods":                    given(t, 0, partition(3)),
		"the canary is the last pod": given(t, 1, partition(3), unorderedBy(nil)).updated(at(0)),
	} {
		assert.Equal(t, w.revisions[0].Name, w.status().CurrentRevision, name)
	}
	w := given(t, 0)
	assert.Equal(t, w.revisions[1].Name, w.status().CurrentRevision, "no partition")
}

// What waits says for whom: the table of the specification.
func TestConditionsSayForWhomTheSetWaits(t *testing.T) {
	rows := []struct {
		name          string
		world         *world
		reason, names string
		ready         corev1.ConditionStatus
	}{
		{"all is well", given(t, 2).updated(span(0, 1)), v1beta1.ReasonComplete, "", corev1.ConditionTrue},
		{"an unready predecessor", given(t, 3, inOrder()).updated(at(0), unready), v1beta1.ReasonBlockedByUnavailablePods, "web-0", corev1.ConditionFalse},
		{"a pod below the partition", given(t, 3, partition(1)).old(at(0), unready).old(at(1, 2)), v1beta1.ReasonBlockedByUnavailablePods, "web-0", corev1.ConditionFalse},
		{"scaleStrategy", given(t, 3, scaleUnavailable("1")).updated(at(0), unready), v1beta1.ReasonBlockedByUnavailablePods, "web-0", corev1.ConditionFalse},
		{"the partition is reached", given(t, 3, partition(2)).old(span(0, 1)).updated(at(2)), v1beta1.ReasonPartitionReached, "2 pods", corev1.ConditionTrue},
		{"partition beyond replicas", given(t, 2, partition(5)).old(span(0, 1)), v1beta1.ReasonPartitionReached, "2 pods", corev1.ConditionTrue},
		{"paused", given(t, 2, paused(true)).old(span(0, 1)), v1beta1.ReasonPaused, "2 pods", corev1.ConditionTrue},
		{"a hook before the deletion of a pod that has ended", given(t, 3, inOrder(), hooked()).updated(at(0), gen.Phase(corev1.PodFailed), heldBefore(contract.LifecyclePreparingDelete)),
			v1beta1.ReasonBlockedByHook, "web-0: the preDelete hook holds the pod, although it has ended", corev1.ConditionFalse},
		{"a hook before deletion", given(t, 1, hooked()).updated(at(0)).updated(at(1), heldBefore(contract.LifecyclePreparingDelete),
			gen.Annotation(contract.LifecycleTimestampAnnotation, "2026-01-02T11:00:00Z")), v1beta1.ReasonBlockedByHook, "preDelete hook holds the pod since 2026-01-02T11:00:00Z", corev1.ConditionFalse},
		{"a hook before an update", given(t, 1, policy(v1beta1.InPlaceIfPossible), hooked()).old(at(0), heldBefore(contract.LifecyclePreparingUpdate)),
			v1beta1.ReasonBlockedByHook, "web-0: the inPlaceUpdate hook", corev1.ConditionFalse},
		{"preNormal", given(t, 1, preNormalHook()).updated(at(0), preparing), v1beta1.ReasonBlockedByHook, "web-0: the pod waits for hook preNormal", corev1.ConditionFalse},
		{"a stale claim", given(t, 1, claimed("data"), retention("Retain", "Delete")).claim("data-web-0", ownedBy(plainRef("v1", "Pod", "web-0", "former"))),
			v1beta1.ReasonBlockedByVolume, "data-web-0", corev1.ConditionFalse},
		{"an invalid spec", given(t, 1, reserved("3-1")).updated(at(0)), v1beta1.ReasonInvalidSpec, "spec.reserveOrdinals[0]", corev1.ConditionFalse},
		{"it goes on", given(t, 3).old(span(0, 2)), v1beta1.ReasonBlockedByUnavailablePods, "web-1", corev1.ConditionFalse},
		{"the last one", given(t, 1).old(at(0)), v1beta1.ReasonRollingOut, "", corev1.ConditionFalse},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			progressing, ready := condition(t, r.world, v1beta1.StatefulSetProgressing), condition(t, r.world, conditions.Ready)
			assert.Equal(t, r.reason, progressing.Reason, progressing.Message)
			assert.Contains(t, progressing.Message, r.names)
			assert.Equal(t, r.ready, ready.Status, "%+v", ready)
			if r.ready == corev1.ConditionFalse {
				assert.Contains(t, ready.Message, r.names)
			}
		})
	}
}

// A paused set is as it should be, and says how many pods would be updated if it were not paused.
func TestAPausedSetCountsThePodsThatWait(t *testing.T) {
	rows := map[string]struct {
		world                        *world
		progressing, reason, message string
	}{
		"all wait":               {given(t, 3, paused(true)).old(span(0, 2)), v1beta1.ReasonPaused, conditions.ReasonPaused, "the update is paused; 3 pods are not updated"},
		"but for the partition":  {given(t, 3, paused(true), partition(2)).old(span(0, 2)), v1beta1.ReasonPaused, conditions.ReasonPaused, "the update is paused; 1 pod is not updated"},
		"none waits":             {given(t, 3, paused(true)).updated(span(0, 2)), v1beta1.ReasonComplete, "Available", "all pods are up to date and available"},
		"none but the partition": {given(t, 3, paused(true), partition(2)).old(span(0, 1)).updated(at(2)), v1beta1.ReasonPartitionReached, "Available", "all pods are up to date and available"},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			progressing, ready := condition(t, r.world, v1beta1.StatefulSetProgressing), condition(t, r.world, conditions.Ready)
			assert.Equal(t, corev1.ConditionTrue, progressing.Status)
			assert.Equal(t, r.progressing, progressing.Reason)
			assert.Equal(t, corev1.ConditionTrue, ready.Status)
			assert.Equal(t, r.reason, ready.Reason)
			assert.Equal(t, r.message, ready.Message)
		})
	}
}

// Conditions stay, with the moments at which they changed.
func TestFailuresAreRememberedAsFalse(t *testing.T) {
	w := given(t, 1)
	s := w.snapshot()
	w.set.Status = Status(s, Compute(s), action.Failures{ScaleError: "create pod web-0: it exists already and belongs to ReplicaSet other", UpdateError: "patch pod"})
	for _, kind := range []string{v1beta1.StatefulSetFailedCreatePod, v1beta1.StatefulSetFailedUpdatePod} {
		failed := conditions.Get(w.set.Status.Conditions, kind)
		require.NotNil(t, failed)
		assert.Equal(t, corev1.ConditionTrue, failed.Status)
		recovered := condition(t, w, kind)
		assert.Equal(t, corev1.ConditionFalse, recovered.Status)
		assert.Equal(t, v1beta1.ReasonRecovered, recovered.Reason)
	}
	assert.Nil(t, conditions.Get(given(t, 1).status().Conditions, v1beta1.StatefulSetFailedCreatePod), "what never failed has no condition")
	s = given(t, 1).snapshot()
	ready := conditions.Get(Status(s, Compute(s), action.Failures{Blocked: "budget web denies"}).Conditions, conditions.Ready)
	assert.Equal(t, "budget web denies", ready.Message)
}

func TestAvailableSaysWhetherAllPodsServe(t *testing.T) {
	assert.Equal(t, corev1.ConditionTrue, condition(t, given(t, 2).updated(span(0, 1)), v1beta1.StatefulSetAvailable).Status)
	c := condition(t, given(t, 2).updated(at(0)).updated(at(1), unready), v1beta1.StatefulSetAvailable)
	assert.Equal(t, corev1.ConditionFalse, c.Status)
	assert.Equal(t, "1 of 2 pods available", c.Message)
	assert.Equal(t, corev1.ConditionFalse, condition(t, given(t, 2).updated(at(0, 5)), v1beta1.StatefulSetAvailable).Status, "condemned pods do not count")
}

// A set that is being deleted has a status and no plan.
func TestASetThatIsBeingDeletedWritesNothing(t *testing.T) {
	w := given(t, 2).old(at(0))
	w.set.DeletionTimestamp = &w.pods[0].CreationTimestamp
	todo := w.plan()
	assert.True(t, todo.Empty(), todo.String())
	assert.Equal(t, int32(1), w.status().Replicas)
}

// A wait is told once, and again when it has become another one.
func TestWaitsAreToldOnce(t *testing.T) {
	w := given(t, 3, inOrder()).updated(at(0), unready)
	require.Len(t, w.plan().Notices, 1)
	w.set.Status = w.status()
	require.Empty(t, w.plan().Notices)
	young := given(t, 3, inOrder()).updated(at(0), gen.NotReady(now.Add(-20*time.Second)))
	assert.Empty(t, young.plan().Notices, "a pod that takes its time to start is no news")
	assert.Equal(t, 40*time.Second, young.plan().RequeueAfter)
}
