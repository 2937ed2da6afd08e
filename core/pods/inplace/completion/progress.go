package completion

import (
	"fmt"
	"time"
)

// Progress is the progress of the update of a pod.
type Progress struct {
	// Complete is true if nothing is under way. A pod that was never updated is complete.
	Complete bool
	// Reason is one word for machines, one of the Reason values; empty when Complete.
	Reason string
	// Serving is true if only resources are awaited that the node does not give now: the pod serves while it waits.
	Serving bool
	// Message describes in one sentence the cause of the wait.
	Message string
	// AgentMissing is true if the update waits for a node agent that does not come: the pod needs a new one in its place,
	// or is put back into service by ServeAsIs.
	AgentMissing bool
	// RequeueAfter asks for another look after this time, 0 for none.
	RequeueAfter time.Duration
}

// WaitFor is a wait for the reason, with a message as by fmt.Sprintf.
func WaitFor(reason, format string, args ...any) *Progress {
	return &Progress{Reason: reason, Message: fmt.Sprintf(format, args...)}
}
