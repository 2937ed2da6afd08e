package node

// Messages of containers.
const (
	// MessageNotFound means that the pod has no such container on the node, or not yet.
	MessageNotFound = "not found container on Node"
	// MessageNoContext means that the request does not name the run of the container to replace.
	MessageNoContext = "the request was not processed by the webhook (no statusContext): create it again"
	// MessageKillFailed begins the message of a container that could not be stopped; the error follows.
	MessageKillFailed = "kill container error: "
	// MessageStillRuns means that the runtime has reported a stop that did not happen.
	MessageStillRuns = "the container still runs after the runtime has stopped it"
)

// Messages are all that users read of this package.
var Messages = []string{MessageNotFound, MessageNoContext, MessageKillFailed, MessageStillRuns}
