package plan

// Messages of a job, in status.message. Others follow them, after a semicolon.
const (
	// MessageCompleted means that all nodes have ended, well or not.
	MessageCompleted = "job has completed"
	// MessageDeadline means that activeDeadlineSeconds have passed; nodes that had not ended count as failed.
	MessageDeadline = "job exceeds activeDeadlineSeconds"
	// MessageNoProgress means that no node is selected.
	MessageNoProgress = "job is running, no progress"
	// MessageNoNodeImages means that there are nodes, and none of them has a NodeImage yet: the manager of module daemon
	// makes those.
	MessageNoNodeImages = "no node has a NodeImage yet"
	// MessageSlow is followed by the nodes that have pulled for a long time, and hold the places of others.
	MessageSlow = "pulling for more than 10 minutes: "
	// MessageProgress is followed by the percentage of nodes that have ended.
	MessageProgress = "job is running, progress "
	// MessageNotInstalled means that the cluster does not serve NodeImage, which module daemon brings. OpenKruise may have
	// installed the kind in another version.
	MessageNotInstalled = "no image is pulled: the cluster does not serve NodeImages in v1beta1; install feature daemon"
	// MessageForbidden means that the operator lacks the permission to read NodeImages.
	MessageForbidden = "no image is pulled: the operator has no permission to list and watch nodeimages"
	// MessageOneNamespace means that the operator serves one namespace only: NodeImages, of nodes, belong to none.
	MessageOneNamespace = "no image is pulled: the operator runs with --namespace and so does not manage NodeImages"
	// MessageSecretsForbidden begins the message about permissions that the manager lacks: in the namespace of the copies of
	// pull secrets, or to read a pull secret.
	MessageSecretsForbidden = "failed to copy pull secrets"
	// MessageNotStarted is the reason why a node that never pulled the image counts as failed.
	MessageNotStarted = "the deadline passed before the node started the pull"
	// MessageNotEnded is the reason why a node that was pulling the image counts as failed.
	MessageNotEnded = "the deadline passed before the node finished the pull"
)

// Reasons of events and of waits.
const (
	// EventSecretNotFound means that a pull secret of the job is not there; the job continues without it.
	EventSecretNotFound = "PullSecretNotFound"
	// EventSecretType means that a secret which the job names is no pull secret by its type; the job continues without it.
	EventSecretType = "NoPullSecret"
	// EventNamespaceMissing means that the namespace of the copies of pull secrets is not there, or is going; the job
	// waits for it.
	EventNamespaceMissing = "ConfigNamespaceMissing"
	// EventSecretsForbidden means that the manager lacks rights in the namespace of the copies of pull secrets, or to read a
	// pull secret; the job waits for them.
	EventSecretsForbidden = "PullSecretsForbidden"
	// EventNotInstalled means that the cluster does not serve NodeImage; the job begins as soon as it does.
	EventNotInstalled = "NodeImageNotInstalled"
	// EventForbidden means that the operator lacks the permission to read NodeImages; the job begins when it is granted.
	EventForbidden = "NodeImagesForbidden"
	// EventOneNamespace means that the operator serves one namespace only, and therefore pulls nothing.
	EventOneNamespace = "OneNamespaceOnly"
	// WaitRoom means that a node has as many images in its NodeImage as it may have.
	WaitRoom = "TooManyImages"
)

// Messages and Reasons are all that users read of this package.
var (
	Messages = []string{
		MessageCompleted, MessageDeadline, MessageNoProgress, MessageProgress, MessageNoNodeImages, MessageSlow, MessageNotInstalled, MessageForbidden,
		MessageOneNamespace, MessageSecretsForbidden,
		MessageNotStarted, MessageNotEnded,
	}
	Reasons = []string{EventSecretNotFound, EventSecretType, EventNamespaceMissing, EventSecretsForbidden, EventNotInstalled, EventForbidden, EventOneNamespace, WaitRoom}
)
