package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/subsets"
)

// Snapshot is the state that a pass over one WorkloadSpread reads. Nothing in it is changed.
type Snapshot struct {
	Spread *v1beta1.WorkloadSpread
	Target Target
	// Pods are the workload's pods that the filter selects and that no older spread has, whatever their state.
	Pods []*corev1.Pod
	// Left are pods of the workload that name this spread and do not belong to it: its filter does not select them any
	// more, or an older spread has them.
	Left []*corev1.Pod
	// Overlap describes the pods that an older spread has.
	Overlap Overlap
	// Nodes are the nodes of pods that no subset has yet, by name.
	Nodes map[string]*corev1.Node
	// Whole are the pods that NeedsWhole names as the server has them, by UID: the others lack the fields that no rule
	// reads.
	Whole map[types.UID]*corev1.Pod
	// Seen is since when each entry of the status counts; nil counts from when it was written.
	Seen map[subsets.Entry]time.Time
	// Pause is how long a subset gets no new pods after pods were unschedulable there.
	Pause    time.Duration
	Refusals action.Refusals
	Now      time.Time
}

// Target is the state of the workload that counts.
type Target struct {
	// Replicas is how many pods are wanted; nil if that is unknown.
	Replicas *int32
	// Missing is true if there is no such workload.
	Missing bool
	// Unknown is why it cannot be found out; nil if the workload shows no number, or need not.
	Unknown error
	// Deletable is how many pods the workload can lose before it fails; nil for any number.
	Deletable *int32
	// HasCosts is true if the workload scales in by deletion costs.
	HasCosts bool
	// Ordinals is how a StatefulSet numbers its pods, which decides about their subsets; nil for other kinds.
	Ordinals *subsets.Ordinals
	// Versioned are the kinds with separate places for each revision of pods.
	Versioned subsets.Versioned
	// Selector are the keys of the labels by which the workload selects its pods; read only if HasLabels is true.
	Selector []string
	// Latest is the revision of new pods; empty if it is unknown.
	Latest string
	// Versions are the revisions that the workload has, nil if that is not known. Any other value in pods is no revision.
	Versions []string
}
