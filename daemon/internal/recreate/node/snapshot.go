package node

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

// Snapshot is an agent's view of the requests for one pod at one time.
type Snapshot struct {
	// PodUID is the pod that all of this is about. Requests with another one are skipped.
	PodUID types.UID
	// Requests are those for the pod, in any state and order. Of completed ones those matter for which a stop
	// has begun; terminating ones are skipped.
	Requests []*v1beta1.ContainerRecreateRequest
	// PodGone means that the pod is gone from the server or is being deleted. It is needed only where NeedsPodGone
	// returns true.
	PodGone bool
	// Containers are the pod's containers in the runtime, init containers included, in any order. Of several
	// runs of one container the newest counts.
	Containers []Container
	// GraceSeen is when this agent first saw condition PreRecreateGrace of a request to be True, by its UID.
	// The condition's own time is another machine's.
	GraceSeen map[types.UID]time.Time
	// Begun are the requests that may have begun though Requests does not show it: this process did not learn
	// the result of the write that begins them.
	Begun map[types.UID]bool
	// Stops are those that this process has begun, by container ID.
	Stops map[string]Stop
	// Refusals are the server's earlier refusals.
	Refusals action.Refusals
	// Now is the node's time.
	Now time.Time
}

// Container is one run of a container as the runtime has it. All times are the node's.
type Container struct {
	// Name in the pod's spec.
	Name string
	// ID with the name of the runtime, such as containerd://... .
	ID string
	// Running and Exited are the state of the run; neither means created or unknown.
	Running, Exited bool
	// RestartCount is the number of runs before this one.
	RestartCount int32
	// CreatedAt, StartedAt and FinishedAt are zero as long as it has not happened.
	CreatedAt, StartedAt, FinishedAt time.Time
}

// Stop is an attempt to stop a container.
type Stop struct {
	// Request is the UID of the request that asked for it.
	Request types.UID
	// Stage is how far it is.
	Stage Stage
	// Err is why it has failed, once it has ended.
	Err error
	// At is when it ended.
	At time.Time
}

// Stage is how far a stop is.
type Stage int

// A stop goes through these in turn; without a hook it begins as `Told`.
const (
	// InHook: the preStop hook runs.
	InHook Stage = iota
	// AfterHook: the hook is over, and the runtime must be asked to stop the container.
	AfterHook
	// `Told`: the runtime stops the container.
	Told
	// Ended: the runtime has stopped the container, or Err is set.
	Ended
)

// Plan holds the next actions, in the order of its fields. Its steps are Writes without those that wait for a refused
// write.
type Plan struct {
	// Abort are the container IDs of stops that have not reached the runtime and that nothing wants any more.
	// Their hooks are cancelled.
	Abort []string
	action.Plan
	// Writes are the status patches that are wanted.
	Writes []Write
	// Hook is the container that must run its hook once that is Written. Kill is the container to stop: its hook is over, or
	// it has none. One of them at least is nil. The Stop must be in the snapshot from then on.
	Hook, Kill *Kill
}

// Write is a change of members of a request's status. Of the manager's members it changes only conditions, together with the
// end of the request: they are those of the version that the write is made from, and one more.
type Write struct {
	// Request is the request that the plan was made from: the write to one completed since then ends in a conflict.
	Request *v1beta1.ContainerRecreateRequest
	// Status holds the changed members.
	Status map[string]any
}

// write adds a write to the plan. Its result matters to its request alone: a policy may refuse the write of another.
func (p *Plan) write(r *v1beta1.ContainerRecreateRequest, status map[string]any) {
	p.Writes = append(p.Writes, Write{r, status})
	p.Add(action.Step{
		Name:     "status",
		Optional: true,
		Actions: []action.Action{{
			Verb:    action.PatchStatus,
			Object:  r,
			Reason:  "Status",
			Message: "state of the containers",
			Patches: []action.Patch{{
				Subresource: "status",
				Type:        types.MergePatchType,
				Body:        map[string]any{"status": status},
			}},
		}},
	})
}

// Written reports whether all writes for a kill's request are done, given the result of the steps.
func (p *Plan) Written(kill *Kill, done *progress.Result) bool {
	uid, left := kill.Request.UID, 0
	for i := range p.Writes {
		if p.Writes[i].Request.UID == uid {
			left++
		}
	}
	for i := range done.Outcomes {
		if r := &done.Outcomes[i]; r.Action.Object.GetUID() == uid && r.State == progress.Done {
			left--
		}
	}
	return left == 0
}

// Doubtful returns the requests that may have begun: they were not written as far as this process knows.
func (p *Plan) Doubtful(done *progress.Result) []types.UID {
	var requests []types.UID
	for i := range done.Outcomes {
		r := &done.Outcomes[i]
		begins := slices.ContainsFunc(p.Writes, func(w Write) bool { return w.Request.UID == r.Action.Object.GetUID() && w.Begins() })
		if begins && r.State != progress.Done {
			requests = append(requests, r.Action.Object.GetUID())
		}
	}
	return requests
}

// Begins reports whether the request's turn begins with the write.
func (w Write) Begins() bool {
	return w.Status["phase"] == v1beta1.RecreateRecreating && w.Request.Status.Phase != v1beta1.RecreateRecreating
}

// Kill is a container to stop.
type Kill struct {
	// Request is who asks.
	Request *v1beta1.ContainerRecreateRequest
	// Container is the name, ContainerID the run. No other run may be stopped in its place.
	Container, ContainerID string
	// PreStop is the hook, or nil; Ports are those that it may name.
	PreStop *v1beta1.PreStopHandler
	Ports   []corev1.ContainerPort
	// Grace is the time for the hook and the stop together.
	Grace time.Duration
	// Message is the text of the event on the container.
	Message string
}
