package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/judges"
	"github.com/flotilla-project/flotilla/core/workloads/failures"
)

// failed is a pod that ended so many seconds ago.
func failed(seconds int, change func(*corev1.PodStatus)) []gen.PodOption {
	return []gen.PodOption{
		gen.NotReady(now.Add(-time.Duration(seconds) * time.Second)), gen.Phase(corev1.PodFailed),
		gen.Change(func(pod *corev1.Pod) { change(&pod.Status) }),
	}
}

func evicted(s *corev1.PodStatus) {
	s.Reason, s.Message = "Evicted", "The node was low on resource: memory."
}

func crashed(s *corev1.PodStatus) {
	s.ContainerStatuses = []corev1.ContainerStatus{
		{Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}}},
		{Name: "second", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}},
	}
}

// The reason of a failure is told when the pod is replaced, once, and not again while it lies there.
func TestFailedPodsAreWarnedAbout(t *testing.T) {
	tests := map[string]struct {
		give *world
		want []string
	}{
		"that was evicted":               {given(t, 1).updated(1, failed(5, evicted)...), []string{"pod web-new0 has failed: Evicted; The node was low on resource: memory."}},
		"whose container crashed":        {given(t, 1).updated(1, failed(5, crashed)...), []string{"pod web-new0 has failed: container main ended with exit code 137 (OOMKilled)"}},
		"of which nothing is known":      {given(t, 1).updated(1, failed(5, func(*corev1.PodStatus) {})...), []string{"pod web-new0 has failed: the kubelet reported no reason"}},
		"the last of several":            {given(t, 2).updated(1, failed(900, crashed)...).updated(1, failed(5, evicted)...).updated(1), []string{"pod web-new1 has failed: Evicted; The node was low on resource: memory."}},
		"not when it was replaced":       {given(t, 1).updated(1, failed(5, evicted)...).updated(1), nil},
		"not when it is leaving":         {given(t, 1).updated(1, append(failed(5, evicted), gen.Terminating())...), nil},
		"not when it ended as it should": {given(t, 1).updated(1, gen.Phase(corev1.PodSucceeded)), nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var notes []string
			for _, n := range tt.give.plan().Notices {
				require.Equal(t, "Warning PodFailed", n.Type+" "+n.Reason)
				require.NotNil(t, n.Related)
				notes = append(notes, n.Note)
			}
			assert.Equal(t, tt.want, notes)
		})
	}
}

// Where pods fail at once the next ones come later each time: without a pause a set fills the cluster with failed pods.
func TestNewPodsWaitWherePodsFailOneAfterTheOther(t *testing.T) {
	w := given(t, 3).updated(1).updated(1, failed(1, evicted)...)
	assert.Equal(t, 2, counted(w.plan(), action.Create))
	w.retry = now.Add(40 * time.Second)
	todo := w.plan()
	assert.Zero(t, counted(todo, action.Create))
	assert.Equal(t, 40*time.Second, todo.RequeueAfter)
	assert.Equal(t, []action.Wait{{Reason: failures.WaitReason, Message: "pods of the set fail repeatedly; the next one is created at 2026-01-02T12:00:40Z"}}, todo.Waits)
	assert.Empty(t, todo.Notices, "why they fail is told when they are replaced")

	w = given(t, 1).updated(1).updated(1, failed(1, evicted)...)
	w.retry = now.Add(40 * time.Second)
	assert.Empty(t, w.plan().Waits, "nothing is missing")
	w = given(t, 2, maxUnavailable("2")).old(1).updated(1, failed(1, evicted)...)
	w.retry = now.Add(40 * time.Second)
	assert.Positive(t, counted(w.plan(), action.Delete), "updates go on")
}

func TestOfFailedPodsTheLastTenStay(t *testing.T) {
	w := given(t, 1).updated(1)
	for i := range 13 {
		w.updated(1, append(failed(1, evicted), gen.Created(now.Add(-time.Duration(i)*time.Minute)))...)
	}
	var deleted []string
	for a := range judges.Actions(w.plan().Steps, "") {
		if a.Verb == action.Delete {
			deleted = append(deleted, a.Object.GetName())
		}
	}
	assert.Equal(t, []string{"web-new13", "web-new12", "web-new11"}, deleted, "the oldest go first")
	w.pods = w.pods[:11]
	assert.Zero(t, counted(w.plan(), action.Delete))
}

// A set whose pods are rejected by every node makes 11 of them in a quarter of an hour, and not one each second.
func TestPodsThatFailOneAfterTheOtherAreFewAndFewer(t *testing.T) {
	known, w, made := &failures.Memory{}, given(t, 1), 0
	for second := range 15 * 60 {
		s := w.snapshot()
		s.Now = now.Add(time.Duration(second) * time.Second)
		s.RetryFailedAt = RetryFailedAt(known, s.Snapshot)
		if counted(Compute(s), action.Create) > 0 {
			made++
			w.updated(1, failed(0, evicted)...)
		}
	}
	assert.Equal(t, 11, made)
}

func counted(todo Plan, verb action.Verb) int { return todo.Count(verb) }
