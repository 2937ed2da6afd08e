package completion

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/inplace/agentreport"
	"github.com/flotilla-project/flotilla/core/pods/inplace/record"
	"github.com/flotilla-project/flotilla/core/pods/inplace/running"
)

// How a container is known to have been restarted.
//
// The record names it with the ID that the status shows when the restart is written. The node agent stops the container
// with that ID and no other, so that one restart stays one, even if it is requested several times or a container
// crashes in between. A container that crashes before it is stopped has been restarted, too. If its image changes as
// well, the kubelet replaces it; the node agent waits for that.

// awaitRestart is the wait for the container's restart, nil when it is done.
func awaitRestart(s *record.State, pod *corev1.Pod, name string, now time.Time) *Progress {
	if id := running.ID(pod, name); running.Container(pod, name) == nil || id != "" && id != s.Restarts[name] {
		return nil
	}
	if _, known := agentreport.StartedWith(pod, name); !known && running.ID(pod, name) != "" {
		return awaitAgent(s, pod, name, now, WaitFor(ReasonNodeAgentMissing, "the node agent has not reported container %s yet", name))
	}
	return awaitAgent(s, pod, name, now, WaitFor(ReasonContainer, "container %s has not been restarted yet", name))
}

// RestartAwaited is the wait for the container's restart by an earlier write, nil when no write restarts it or it has
// been seen to have restarted.
func RestartAwaited(s *record.State, c *action.PodChange, name string) *Progress {
	if record.IsInService(c) {
		return nil
	}
	if _, changed := s.LastContainerStatuses[name]; changed {
		if p := AwaitImage(c.Pod, s, name, c.Now.Time); p != nil {
			return p
		}
	}
	if _, asked := s.Restarts[name]; asked {
		if p := awaitRestart(s, c.Pod, name, c.Now.Time); p != nil {
			return p
		}
	}
	if container := running.Container(c.Pod, name); container != nil {
		return awaitOtherEnv(s, c, container)
	}
	return nil
}
