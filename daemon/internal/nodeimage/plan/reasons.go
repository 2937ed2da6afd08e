package plan

// Messages of tags when their pull is given up.
const (
	// MessageSilent means that the node agent has not reported about the pull for longer than it may take.
	MessageSilent = "node has not responded for a long time"
	// MessageDeadline means that activeDeadlineSeconds have passed.
	MessageDeadline = "pulling exceeds the activeDeadlineSeconds"
	// MessageNotBegun means that the agent has not begun for longer than the pull may take. Its own reason follows.
	MessageNotBegun = "the pull has not started"
)

// EventFailed is the reason of events about pulls that failed.
const EventFailed = "PullImageFailed"

// WaitNodeReady means that a node has not been ready for long enough to get a NodeImage.
const WaitNodeReady = "NodeReady"

// Messages and Reasons are all that users read of this package.
var (
	Messages = []string{MessageSilent, MessageDeadline, MessageNotBegun}
	Reasons  = []string{EventFailed, WaitNodeReady}
)
