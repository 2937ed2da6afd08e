package plan

import (
	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/result"
)

// Messages of requests that the manager completes.
const (
	// MessagePodGone means that the pod is gone, or terminating, or another one of its name.
	MessagePodGone = "pod has gone"
	// MessagePodOver means that no container of the pod is started again.
	MessagePodOver = "pod has terminated"
	// MessageNoAnswer means that the node agent sends no heartbeat.
	MessageNoAnswer = "daemon has not responded for a long time"
	// MessageDeadline means that activeDeadlineSeconds have passed.
	MessageDeadline = "recreating has exceeded the activeDeadlineSeconds"
)

// reasonOf returns the reason of condition Failed that goes with a message.
func reasonOf(message string) string {
	switch message {
	case MessagePodGone:
		return result.ReasonPodGone
	case MessagePodOver:
		return result.ReasonPodTerminated
	case MessageNoAnswer:
		return result.ReasonAgentSilent
	default:
		return result.ReasonDeadlineExceeded
	}
}

// EventUncompleted is the reason of the event on a request that has ended before its containers were recreated.
const EventUncompleted = "RecreateNotCompleted"

// HoldRefused is the reason of condition PreRecreateGrace, and of the event, while the pod may not be taken out of service.
const HoldRefused = "HoldRefused"

// Messages and Reasons are all that users read of this package.
var (
	Messages = []string{MessagePodGone, MessagePodOver, MessageNoAnswer, MessageDeadline}
	Reasons  = []string{EventUncompleted, v1beta1.PreRecreateGrace, HoldRefused}
)
