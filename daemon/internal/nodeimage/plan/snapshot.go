package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

// Job is an ImagePullJob. One of the same name that was made later is another.
type Job struct {
	types.NamespacedName
	UID types.UID
}

// Snapshot is the read-only view of the world for one node.
type Snapshot struct {
	// Name is that of the node and of its NodeImage.
	Name string
	// Node is nil when there is none.
	Node *corev1.Node
	// Image is the NodeImage, nil when there is none.
	Image *v1beta1.NodeImage
	// Jobs says which of the ImagePullJobs that own tags are there. Of a job that is not in the map nothing
	// is known.
	Jobs map[Job]bool
	// Secrets says which secrets of references without a mode are there. Of a secret that is not in the
	// map nothing is known.
	Secrets map[types.NamespacedName]bool
	// CreationDelay is how long a node must have been ready before it gets a NodeImage.
	CreationDelay time.Duration
	// Refusals are what the server has refused before.
	Refusals action.Refusals
	// Now is the moment of the pass.
	Now time.Time
}
