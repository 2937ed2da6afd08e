package completion

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/inplace/agentreport"
	"github.com/flotilla-project/flotilla/core/pods/inplace/record"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// awaitEnv is the wait for the container's environment, nil when the environment matches the present metadata.
func awaitEnv(s *record.State, c *action.PodChange, container *corev1.Container) *Progress {
	if !agentreport.ReadsMetadata(container) {
		return nil
	}
	read, known := agentreport.StartedWith(c.Pod, container.Name)
	switch {
	case !known:
		return awaitAgent(s, c.Pod, container.Name, c.Now.Time,
			WaitFor(ReasonNodeAgentMissing, "the node agent has not reported container %s yet", container.Name))
	case read != agentreport.ExpectedEnvHash(container, c.Pod):
		return awaitAgent(s, c.Pod, container.Name, c.Now.Time,
			WaitFor(ReasonContainer, "container %s has not been restarted with its new environment yet", container.Name))
	}
	left := s.WrittenAt(container.Name).Add(ReadTime).Sub(c.Now.Time)
	if left <= 0 {
		return nil
	}
	p := WaitFor(ReasonContainer, "container %s may still have the old environment; it is checked again within %s", container.Name, ReadTime)
	p.RequeueAfter = left
	return p
}

// awaitOtherEnv is awaitEnv for a container with an environment that the update leaves alone. If another client has
// changed metadata that it reads, the node agent restarts it while the pod is out of service. The update waits for that
// for a limited time, because it can do without a node agent.
func awaitOtherEnv(s *record.State, c *action.PodChange, container *corev1.Container) *Progress {
	if _, known := agentreport.StartedWith(c.Pod, container.Name); !known || !podstate.HasReadinessGate(c.Pod, contract.InPlaceUpdateReady) {
		return nil
	}
	left := s.LastWrite().Add(UnsureTime).Sub(c.Now.Time)
	if left <= 0 || record.HasRead(record.Metadata{}, container, c.Pod) {
		return nil
	}
	p := WaitFor(ReasonContainer, "container %s has not been restarted with its new environment yet", container.Name)
	p.RequeueAfter = left
	return p
}
