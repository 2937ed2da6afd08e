package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/eligibility"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// Snapshot is everything that a plan for one job is made from, read-only.
type Snapshot struct {
	// Job is the job.
	Job *v1beta1.BroadcastJob
	// Owner is the reference to the job, as the controller of its pods.
	Owner metav1.OwnerReference
	// Pods are the pods that the job controls, in any order and state.
	Pods []*corev1.Pod
	// Nodes are all nodes, in any order, each with the verdict of the job's template.
	Nodes []Node
	// Bind has new pods name their nodes themselves. Otherwise they are pinned to them, and the scheduler binds them.
	Bind bool
	// Refusals are the writes that the server has refused before.
	Refusals action.Refusals
	// Now is the time of the pass.
	Now time.Time
	// Seed determines the names of new pods.
	Seed uint64
}

// Node is a node, and the verdict of a template on it.
type Node struct {
	*corev1.Node
	eligibility.Verdict
}
