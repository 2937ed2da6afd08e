package cluster

import (
	"time"

	"github.com/flotilla-project/flotilla/core/plan/action"
)

// Actors that write to the world. Tests may use any other word for users and foreign controllers.
const (
	OperatorActor  = "operator"
	AgentActor     = "agent" // the agents of nodes
	CloudActor     = "cloud" // adds and removes nodes, and taints, labels and cordons them
	KubeletActor   = "kubelet"
	SchedulerActor = "scheduler"
	CollectorActor = "collector"
	BinderActor    = "binder"
	NodeActor      = "nodes" // the controller that evicts pods of silent nodes
	UserActor      = "user"
)

// EventType is what a watch reports.
type EventType string

// The types of events.
const (
	Added    EventType = "Added"
	Modified EventType = "Modified"
	Deleted  EventType = "Deleted"
)

// Event is one successful write that changed something.
type Event struct {
	Type EventType
	// Actor is who wrote.
	Actor string
	// Time is the virtual moment.
	Time time.Time
	// Kind is the kind of the object, such as "Pod".
	Kind string
	// Object is the object after the write; for Deleted its last state. Read-only.
	Object action.Object
	// Old is the object before the write, nil for Added. Read-only.
	Old action.Object
	// DryRun says that Admission is asked for a dry run.
	DryRun bool
	// Subresource is "", "status", "resize" or "binding".
	Subresource string
}
