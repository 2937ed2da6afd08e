package plan

// Messages of tags whose pull is given up.
const (
	// MessageSilent says that the node agent has not reported about the pull for longer than it may take.
	MessageSilent = "node has not responded for a long time"
	// MessageDeadline says that activeDeadlineSeconds have passed.
	MessageDeadline = "pulling exceeds the activeDeadlineSeconds"
)

// EventFailed is the reason of events about pulls that failed.
const EventFailed = "PullImageFailed"

// WaitNodeReady says that a node has not been ready for long enough to get a NodeImage.
const WaitNodeReady = "NodeReady"

// Messages and Reasons are all that users read of this package.
var (
	Messages = []string{MessageSilent, MessageDeadline}
	Reasons  = []string{EventFailed, WaitNodeReady}
)
