package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/workloads/failures"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// Where pods of an ordinal fail at once the next ones come later each time, in either order. Others wait for nothing.
func TestFailedPodsWaitForTheirReplacement(t *testing.T) {
	for _, policy := range []appsv1.PodManagementPolicyType{appsv1.ParallelPodManagement, appsv1.OrderedReadyPodManagement} {
		w := given(t, 2, func(s *v1beta1.StatefulSet) { s.Spec.PodManagementPolicy = policy }).updated(at(0), unready, failed).updated(at(1))
		todo := w.plan()
		assert.Equal(t, 1, todo.Count(action.Delete), "the first is replaced at once")
		w.retry = map[string]time.Time{"web-0": now.Add(40 * time.Second)}
		todo = w.plan()
		assert.Zero(t, todo.Count(action.Delete))
		assert.LessOrEqual(t, todo.RequeueAfter, 40*time.Second)
		assert.Contains(t, todo.Waits, action.Wait{
			Reason: failures.WaitReason, Object: "web-0", Message: "pods of ordinal 0 fail repeatedly; the next one is created at 2026-01-02T12:00:40Z",
		})
		w.retry = map[string]time.Time{"web-1": now.Add(40 * time.Second)}
		todo = w.plan()
		assert.Equal(t, 1, todo.Count(action.Delete), "of another ordinal")
	}
}

// A pod that its node rejects each time is made 10 times more in a quarter of an hour, and not once each second.
func TestPodsThatFailOneAfterTheOtherAreFewAndFewer(t *testing.T) {
	known, made := &failures.Memory{}, 0
	w := given(t, 1).updated(at(0), unready, failed)
	for second := range 15 * 60 {
		s := w.snapshot()
		s.Now = now.Add(time.Duration(second) * time.Second)
		s.RetryFailedAt = RetryFailedAt(known, s.Snapshot)
		if todo := Compute(s); todo.Count(action.Delete) > 0 {
			made++
			w.pods[0].UID = gen.UID(time.Duration(made).String())
		}
	}
	assert.Equal(t, 10, made)
}
