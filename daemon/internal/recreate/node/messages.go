package node

// Messages of containers.
const (
	// MessageNotFound says that the pod has no such container on the node, or not yet.
	MessageNotFound = "not found container on Node"
	// MessageNoContext says that the request does not tell which run of the container is to be replaced.
	MessageNoContext = "the request was not processed by the webhook (no statusContext): create it again"
	// MessageKillFailed begins the message of a container that could not be stopped; the error follows.
	MessageKillFailed = "kill container error: "
	// MessageStillRuns says that the runtime has reported a stop that did not happen.
	MessageStillRuns = "the container still runs after the runtime has stopped it"
)

// Messages are all that users read of this package.
var Messages = []string{MessageNotFound, MessageNoContext, MessageKillFailed, MessageStillRuns}
