package plan

import "github.com/flotilla-project/flotilla/daemon/api/v1beta1"

// Messages of requests that the manager completes.
const (
	// MessagePodGone says that the pod is gone, or going, or another one of its name.
	MessagePodGone = "pod has gone"
	// MessagePodOver says that no container of the pod is started again.
	MessagePodOver = "pod has terminated"
	// MessageNoAnswer says that the node agent gives no sign of life.
	MessageNoAnswer = "daemon has not responded for a long time"
	// MessageDeadline says that activeDeadlineSeconds have passed.
	MessageDeadline = "recreating has exceeded the activeDeadlineSeconds"
)

// EventUncompleted is the reason of the event on a request that has ended before its containers were recreated.
const EventUncompleted = "RecreateNotCompleted"

// Messages and Reasons are all that users read of this package.
var (
	Messages = []string{MessagePodGone, MessagePodOver, MessageNoAnswer, MessageDeadline}
	Reasons  = []string{EventUncompleted, v1beta1.PreRecreateGrace}
)
