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

// Snapshot is the input of the plan for one node, read-only.
type Snapshot struct {
	// Name is the name of the node and of its NodeImage.
	Name string
	// Node is nil when there is none.
	Node *corev1.Node
	// Image is the NodeImage, nil when there is none.
	Image *v1beta1.NodeImage
	// Jobs holds whether each ImagePullJob that owns tags exists. Nothing is known of a job that is not in the map.
	Jobs map[Job]bool
	// Secrets holds whether each secret of references without a mode exists. Nothing is known of a secret that is not in the
	// map.
	Secrets map[types.NamespacedName]bool
	// Seen is when this process first saw pulls begin and end.
	Seen Seen
	// CreationDelay is how long a node must have been ready before it gets a NodeImage.
	CreationDelay time.Duration
	// Refusals are the server's earlier refusals.
	Refusals action.Refusals
	// Now is the time of the pass.
	Now time.Time
}
