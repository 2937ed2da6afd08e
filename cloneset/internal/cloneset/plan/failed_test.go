package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/testing/gen"
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
		"of which nothing is known":      {given(t, 1).updated(1, failed(5, func(*corev1.PodStatus) {})...), []string{"pod web-new0 has failed: its kubelet gives no reason"}},
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
