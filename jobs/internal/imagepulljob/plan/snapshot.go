package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"

	nodeimage "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// Snapshot is the input of the plan for one job, read-only.
type Snapshot struct {
	// Job is the job.
	Job *v1beta1.ImagePullJob
	// Targets are the NodeImages of the nodes that are to pull, each once, in the order in which they begin if all are ready.
	Targets []*nodeimage.NodeImage
	// NotReady are the names of nodes that are not ready; nil if they are unknown.
	NotReady map[string]bool
	// Owned are the NodeImages with tags that the job owns.
	Owned []*nodeimage.NodeImage
	// NoNodeImages is true if there are nodes and none of them has a NodeImage.
	NoNodeImages bool
	// Absent is how many nodes the job names that have no NodeImage.
	Absent int
	// Secrets are the pull secrets of the job.
	Secrets Secrets
	// TTL is how much longer than the job itself a tag stays on a node.
	TTL time.Duration
	// Refusals are the writes that the server has refused before.
	Refusals action.Refusals
	// Now is the time of the pass.
	Now time.Time
}

// Secrets are the pull secrets of a job and their copies.
type Secrets struct {
	// Namespace is where node agents read secrets.
	Namespace string
	// NamespaceReady is false if the namespace is known to be absent or going.
	NamespaceReady bool
	// Lacking are the verbs that the manager may not use on secrets in that namespace, and needs to.
	Lacking []string
	// Unread is true as long as the manager has not read the copies: nothing is known of them.
	Unread bool
	// Sources are the secrets of the job by name: nil for one that is known to be absent. Nothing is known of one that is
	// not in the map.
	Sources map[string]*corev1.Secret
	// Forbidden are those of them that the manager may not read.
	Forbidden []string
	// Copies are the copies of these secrets, and all that the job refers to.
	Copies []*corev1.Secret
	// Taken are the CopyNames of these secrets that other secrets have.
	Taken []string
	// Gone are the names of secrets in that namespace that NodeImages refer to and that do not exist.
	Gone []string
}
