package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/progress"
)

// Snapshot is everything that a plan is made from. It is read-only.
type Snapshot struct {
	// Pod is the pod as in the cache.
	Pod *corev1.Pod
	// Containers are the containers of this very pod in the runtime.
	Containers []Container
	// EnvFromMetadata is the feature gate InPlaceUpdateEnvFromMetadata: without it no environment is read and nothing
	// is restarted.
	EnvFromMetadata bool
	// Outdated are the containers that an earlier plan found to be outdated, by name.
	Outdated map[string]Outdated
	// Unread are the containers with an environment that an earlier plan found unreadable, by ID.
	Unread map[string]Unread
	// Refusals are the server's earlier refusals.
	Refusals action.Refusals
	// Now is the time of the node.
	Now time.Time
}

// Container is a container as the runtime has it.
type Container struct {
	Name string
	// ID is the container ID in the pod's status, such as containerd://0a1b.
	ID           string
	RestartCount int32
	// Hash is the hash of the spec that the kubelet recorded on the container.
	Hash    uint64
	Running bool
	// Env is the environment of the process; nil if it was not read or is not reported.
	Env map[string]string
}

// Outdated is remembered for a container if its environment differs from the metadata of its pod, or if its restart is
// asked for, as long as this is true for each of its following runs.
type Outdated struct {
	// Since is when that was found out.
	Since time.Time
	// Stops is how often it was stopped, and Next when it may be stopped again.
	Stops int
	Next  time.Time
}

// Unread is remembered for a container if its environment could not be read: some images have no command to print
// it, and some runtimes do not report it.
type Unread struct {
	// Tries is how often that was tried, and Next when it is tried again.
	Tries int
	Next  time.Time
}

// Plan holds the writes and stops of a pass: its steps write the annotation.
type Plan struct {
	action.Plan
	// Annotation is the value that the pod is to have; empty when it has it already.
	Annotation string
	// Stop are the IDs of containers to stop, once Reported.
	Stop []string
	// Outdated is to be remembered until the next plan, once Reported.
	Outdated map[string]Outdated
	// Unread is to be remembered until the next plan.
	Unread map[string]Unread
}

// Reported reports whether the pod has the annotation after the steps ended with this result.
func (p *Plan) Reported(done *progress.Result) bool {
	return p.Annotation == "" || done.Done(action.PatchStatus) > 0
}
