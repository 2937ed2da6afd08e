package cri

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// State is the state of a container.
type State string

// The states of a container.
const (
	StateCreated State = "Created"
	StateRunning State = "Running"
	StateExited  State = "Exited"
	StateUnknown State = "Unknown"
)

// Pod is the pod to which a container belongs, by the labels that the kubelet wrote on the container.
type Pod struct {
	Namespace, Name string
	UID             types.UID
}

// Container is a container as a runtime lists it.
type Container struct {
	// ID is the ID as in the pod's status: with the name of the runtime, such as containerd://0a1b.
	ID   string
	Name string
	Pod  Pod
	// SandboxID is the runtime's own ID of the pod's sandbox.
	SandboxID string
	State     State
	CreatedAt time.Time // by the node's clock
	// RestartCount is how often the kubelet had restarted the container before this one.
	RestartCount int32
	// Hash is the hash of the container's spec that the kubelet recorded; 0 if it is not there.
	Hash uint64
	// PreStop is the pod's hook and Ports are the container's ports at the time of its creation.
	PreStop *corev1.LifecycleHandler
	Ports   []corev1.ContainerPort
	// TerminationGracePeriod is the pod's; DeletionGracePeriod is set where the pod was being deleted already
	// when the container was created. In seconds.
	TerminationGracePeriod, DeletionGracePeriod *int64
}

// Status is a container in more detail than lists have.
type Status struct {
	Container
	// StartedAt is zero for a container that has not started, and FinishedAt for one that has not ended. Both
	// are by the node's clock.
	StartedAt, FinishedAt time.Time
	// Env is the environment of the container's process as it was started; nil if the runtime does not report it, and
	// where it was not asked for.
	Env map[string]string
}

// Image is an image that a runtime keeps.
type Image struct {
	// ID is the digest of the image's configuration.
	ID string
}

// Pull is a request to pull an image.
type Pull struct {
	// Reference is the full reference, with registry.
	Reference string
	// Auth are the credentials; nil means anonymous.
	Auth *Auth
	// Sandbox describes the pod for which the image is pulled.
	Sandbox Sandbox
}

// Sandbox describes to a runtime the pod for which an image is pulled.
type Sandbox struct {
	Name, Namespace, UID string
	Labels, Annotations  map[string]string
}

// Auth are credentials for a registry.
type Auth struct {
	Username, Password string
	// IdentityToken is exchanged for an access token at the registry; RegistryToken is an access token.
	IdentityToken, RegistryToken string
}
