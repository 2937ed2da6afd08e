package inplace

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/flotilla-project/flotilla/core/plan/action"
)

// The node agent's report of a container has no timestamp. An agent shows that it is there when it is asked to restart
// the container: the container then gets another ID, soon after the time that it may take to stop.

// stopMargin is the time that the agent and the kubelet take for a restart beyond the time that the container takes to
// stop.
const stopMargin = time.Minute

// awaitAgent is the wait for the agent's work on the container, or, once that takes too long, for an agent.
func (s *State) awaitAgent(pod *corev1.Pod, name string, now time.Time, wait *Progress) *Progress {
	patience := unsureTime
	if stop := pod.Spec.TerminationGracePeriodSeconds; stop != nil {
		patience = max(patience, time.Duration(*stop)*time.Second+stopMargin)
	}
	if left := s.writtenAt(name).Add(patience).Sub(now); left > 0 {
		wait.RequeueAfter = left
		return wait
	}
	wait = waitFor(ReasonNodeAgentMissing, "the node agent has not restarted container %s within %s", name, patience)
	wait.AgentMissing = true
	return wait
}

// AgentMissing reports whether the update of the pod waits for a node agent that does not come.
func AgentMissing(pod *corev1.Pod, now time.Time, o Options) bool {
	c := action.NewPodChange(pod, metav1.NewTime(now))
	if nothingUnderWay(c) {
		return false
	}
	before := readPrior(c)
	if before.state == nil || before.grace != nil || before.unreadable() {
		return false
	}
	p := awaitedOf(c, before.state, o).first
	return p != nil && p.AgentMissing
}

// ServeAsIs puts a pod back into service if its update waits for a node agent that does not come. The record still
// names the containers to restart, so that the update is not taken for complete.
func ServeAsIs(c *action.PodChange, o Options) {
	before := readPrior(c)
	if before.state == nil || before.grace != nil || before.unreadable() {
		return
	}
	a := awaitedOf(c, before.state, o)
	if len(a.images) > 0 || isInService(c) {
		return
	}
	if len(a.env) > 0 {
		before.state.recordRestarts(c.Pod, sets.New(a.env...))
		writeState(c, before.state)
	}
	putIntoService(c, false)
}

// awaitedAsIs reports containers of a pod in service that an earlier update had to restart; nil when it has none.
func (s *State) awaitedAsIs(pod *corev1.Pod) *Progress {
	for _, name := range sets.List(sets.KeySet(s.pendingRestarts(pod))) {
		p := waitFor(ReasonNodeAgentMissing, "the pod serves, but the node agent has not restarted container %s", name)
		p.AgentMissing = true
		return p
	}
	return nil
}
