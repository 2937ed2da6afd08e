package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/pods/imageref"
	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

// Snapshot is everything that a plan is made from. It is read-only.
type Snapshot struct {
	// Image is the node's NodeImage; nil when there is none.
	Image *v1beta1.NodeImage
	// Pulls are the pulls in memory, in the order in which they were added.
	Pulls []Pull
	// Slots is how many pulls may run at a time; 0 or less means any number.
	Slots int
	// NoRuntime is why no container runtime can be used; empty if one can.
	NoRuntime string
	// Now is the time of the node.
	Now time.Time
}

// ID distinguishes pulls.
type ID struct {
	imageref.Ref
	Version int64
}

// State is the state of a pull in memory.
type State string

// The states of a pull.
const (
	// Queued waits for a slot.
	Queued State = "Queued"
	// Running holds a slot.
	Running State = "Running"
	// Stopping was asked to stop and holds its slot until it has stopped.
	Stopping State = "Stopping"
	// Ended has a Result.
	Ended State = "Ended"
)

// Pull is a pull in memory.
type Pull struct {
	ID
	State State
	// StartTime is when the pull got its slot first, perhaps in an earlier process; nil before.
	StartTime *metav1.Time
	// Result is set for an ended pull.
	Result Result
}

// Result is how a pull ended.
type Result struct {
	// Failure is why the image could not be pulled; empty for success.
	Failure string
	// ImageID is the name of the image and the runtime's ID of it.
	ImageID string
	// At is when it ended.
	At metav1.Time
}

// PullRequest is an image to pull, and how. It may change while the pull runs.
type PullRequest struct {
	ID
	// Timeout bounds one attempt.
	Timeout time.Duration
	// Attempts is how many there are, at least 1.
	Attempts int
	// Deadline bounds all attempts together, from the start of the first; 0 means that nothing does.
	Deadline time.Duration
	// Always asks the registry even if the node has the image.
	Always bool
	// Secrets hold the credentials.
	Secrets []v1beta1.SecretReference
	// Sandbox is handed to the runtime; nil for nothing. It belongs to the NodeImage.
	Sandbox *v1beta1.SandboxConfig
	// Owners are the objects that want the tag.
	Owners []corev1.ObjectReference
}

// Plan holds the pulls that a pass starts and stops, and the status that it writes.
type Plan struct {
	// Requests are all tags that are to be pulled, whether their pull is in memory already or not. New ones come
	// last in the queue, in this order.
	Requests []PullRequest
	// Start are the pulls that get a slot.
	Start []ID
	// Stop are running pulls to cancel; Drop are others to remove from memory.
	Stop, Drop []ID
	// Status is the status to write; nil when there is no NodeImage.
	Status *v1beta1.NodeImageStatus
	// Ended are the pulls with an end that Status reports for the first time.
	Ended []EndedPull
	// Unfinished means that tags are left to pull.
	Unfinished bool
}

// EndedPull is the end of a pull and the objects that show its event.
type EndedPull struct {
	ID
	Result
	// Took is the time since the pull got its slot.
	Took time.Duration
	// Owners are the objects that want the tag.
	Owners []corev1.ObjectReference
}
