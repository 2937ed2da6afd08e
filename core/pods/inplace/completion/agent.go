package completion

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/flotilla-project/flotilla/core/pods/inplace/record"
)

// The node agent's report of a container has no timestamp. An agent shows that it is there when it is asked to restart
// the container: the container then gets another ID, soon after the time that it may take to stop.

// stopMargin is the time that the agent and the kubelet take for a restart beyond the time that the container takes to
// stop.
const stopMargin = time.Minute

// awaitAgent is the wait for the agent's work on the container, or, once that takes too long, for an agent.
func awaitAgent(s *record.State, pod *corev1.Pod, name string, now time.Time, wait *Progress) *Progress {
	patience := UnsureTime
	if stop := pod.Spec.TerminationGracePeriodSeconds; stop != nil {
		patience = max(patience, time.Duration(*stop)*time.Second+stopMargin)
	}
	if left := s.WrittenAt(name).Add(patience).Sub(now); left > 0 {
		wait.RequeueAfter = left
		return wait
	}
	wait = WaitFor(ReasonNodeAgentMissing, "the node agent has not restarted container %s within %s", name, patience)
	wait.AgentMissing = true
	return wait
}

// awaitedAsIs reports containers of a pod in service that an earlier update had to restart; nil when it has none.
func awaitedAsIs(s *record.State, pod *corev1.Pod) *Progress {
	for _, name := range sets.List(sets.KeySet(s.PendingRestarts(pod))) {
		p := WaitFor(ReasonNodeAgentMissing, "the pod serves, but the node agent has not restarted container %s", name)
		p.AgentMissing = true
		return p
	}
	return nil
}
