package plan

// Messages of tags whose pull is given up.
const (
	// MessageSilent says that the node agent has not reported about the pull for longer than it may take.
	MessageSilent = "node has not responded for a long time"
	// MessageDeadline says that activeDeadlineSeconds have passed.
	MessageDeadline = "pulling exceeds the activeDeadlineSeconds"
	// MessageNotBegun says that the agent has not begun for longer than the pull may take. Its own reason follows.
	MessageNotBegun = "the pull has not started"
)

// EventFailed is the reason of events about pulls that failed.
const EventFailed = "PullImageFailed"

// WaitNodeReady says that a node has not been ready for long enough to get a NodeImage.
const WaitNodeReady = "NodeReady"

// Messages and Reasons are all that users read of this package.
var (
	Messages = []string{MessageSilent, MessageDeadline, MessageNotBegun}
	Reasons  = []string{EventFailed, WaitNodeReady}
)
