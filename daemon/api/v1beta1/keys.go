package v1beta1

// Labels of a ContainerRecreateRequest, set when it is created.
const (
	// PodUIDLabel is the UID of the pod. A pod of the same name with another UID is not changed.
	PodUIDLabel = "crr.apps.kruise.io/pod-uid"
	// NodeNameLabel is the node of the pod, by which its agent finds the request.
	NodeNameLabel = "crr.apps.kruise.io/node-name"
	// ActiveLabel is "true" until the request is completed.
	ActiveLabel = "crr.apps.kruise.io/active"
)

// UnreadyAcquiredFinalizer is set on a ContainerRecreateRequest while it keeps its pod not ready.
const UnreadyAcquiredFinalizer = "crr.apps.kruise.io/unready-acquired"

// Annotations of a v1alpha1 ContainerRecreateRequest that have the values of fields of v1beta1.
const (
	// SyncContainerStatusesAnnotation is the JSON list of status.containerStatusSnapshot.
	SyncContainerStatusesAnnotation = "crr.apps.kruise.io/sync-container-statuses"
	// UnreadyAcquiredAnnotation is the time of condition PreRecreateGrace, RFC 3339 in UTC.
	UnreadyAcquiredAnnotation = "crr.apps.kruise.io/unready-acquired"
	// ConditionsAnnotation has what v1alpha1 cannot express of status.conditions, as a JSON list.
	ConditionsAnnotation = "crr.apps.kruise.io/conditions"
)

// Conditions of a ContainerRecreateRequest.
const (
	// RecreateComplete is True once each container has been recreated and the request has ended.
	RecreateComplete = "Complete"
	// RecreateNotComplete is True once the request has ended and a container has not been recreated.
	RecreateNotComplete = "Failed"
	// PreRecreateGrace is the type and the reason of the condition. It is True once the pod was made not ready.
	PreRecreateGrace = "PreRecreateGrace"
	// PreRecreateGraceMessage is the message of the condition.
	PreRecreateGraceMessage = "Pod has been forced to not-ready for unreadyGracePeriodSeconds drain"
)

// Keys of a NodeImage.
const (
	// FakeNodeImageLabel keeps a NodeImage that has no node. Its presence counts, not its value.
	FakeNodeImageLabel = "apps.kruise.io/fake-nodeimage"
	// SecretModesAnnotation is set on a v1alpha1 NodeImage. It is the JSON object of the modes of pull secrets, by
	// image and then by "namespace/name".
	SecretModesAnnotation = "apps.kruise.io/nodeimage-secret-modes"
	// DiskPressureAnnotation is "true" while the node has condition DiskPressure. Its agent begins no pull then.
	DiskPressureAnnotation = "apps.kruise.io/disk-pressure"
)

// Label of nodes that no agent runs on.
const (
	// NodeTypeLabel says what kind of node it is.
	NodeTypeLabel = "type"
	// VirtualKubelet is the value of NodeTypeLabel for virtual nodes.
	VirtualKubelet = "virtual-kubelet"
)

// Where the pull secrets are that node agents may read.
const (
	// ConfigNamespaceEnv names the namespace in the environment of manager and agent.
	ConfigNamespaceEnv = "KRUISE_DAEMON_CONFIG_NS"
	// SecretSourceAnnotation names the secret of which one there is a copy, as namespace/name. A copy serves the tags that
	// objects of that namespace want, and no others.
	SecretSourceAnnotation = "imagepulljobs.kruise.io/source-key"
	// DefaultConfigNamespace is the namespace when ConfigNamespaceEnv is not set.
	DefaultConfigNamespace = "kruise-daemon-config"
)
