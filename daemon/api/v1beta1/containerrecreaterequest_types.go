package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ContainerRecreateRequest restarts containers of a running pod. The pod keeps its node, its
// address and its volumes: the node agent stops the containers and kubelet starts them again.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:shortName=crr
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="PHASE",type="string",JSONPath=".status.phase",description="The phase of the request."
// +kubebuilder:printcolumn:name="POD",type="string",JSONPath=".spec.podName",description="The pod."
// +kubebuilder:printcolumn:name="NODE",type="string",JSONPath=".metadata.labels.crr\\.apps\\.kruise\\.io/node-name",description="The node of the pod."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the request was created."
// +kubebuilder:printcolumn:name="MESSAGE",type="string",priority=1,JSONPath=".status.message",description="Why the request ended early."
type ContainerRecreateRequest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec has the containers to recreate and the strategy. It is immutable.
	// +optional
	Spec ContainerRecreateRequestSpec `json:"spec,omitempty"`
	// status has the progress of the node agent.
	// +optional
	Status ContainerRecreateRequestStatus `json:"status,omitempty,omitzero"`
}

// ContainerRecreateRequestList is a list of ContainerRecreateRequests.
// +kubebuilder:object:root=true
type ContainerRecreateRequestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the ContainerRecreateRequests.
	Items []ContainerRecreateRequest `json:"items"`
}

// ContainerRecreateRequestSpec has the containers to recreate and the strategy.
type ContainerRecreateRequestSpec struct {
	// podName is the name of a pod of the same namespace.
	PodName string `json:"podName"`
	// containers are recreated in this order.
	Containers []ContainerToRecreate `json:"containers"`
	// strategy has options for the restart.
	// +optional
	Strategy *RecreateStrategy `json:"strategy,omitempty"`
	// activeDeadlineSeconds is how long after the operator first saw the request it is completed in any state. It must be
	// at least 3. The default is no deadline.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be 0 or more"
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`
	// ttlSecondsAfterFinished is how long after its completion the request is deleted. By default it is kept.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be 0 or more"
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// ContainerToRecreate names a container. The webhook sets the other fields when the request is created, and rejects
// requests that set them.
type ContainerToRecreate struct {
	// name of a container of the pod.
	Name string `json:"name"`
	// preStop is the container's preStop hook. It runs before the container is stopped.
	// +optional
	PreStop *PreStopHandler `json:"preStop,omitempty"`
	// ports are the ports of the container, for a preStop hook with a named port.
	// +optional
	Ports []corev1.ContainerPort `json:"ports,omitempty"`
	// statusContext identifies the container that ran when the request was created.
	// +optional
	StatusContext *ContainerStatusContext `json:"statusContext,omitempty"`
}

// PreStopHandler is the preStop hook of a container. At most one member is set.
type PreStopHandler struct {
	// exec runs a command in the container.
	// +optional
	Exec *corev1.ExecAction `json:"exec,omitempty"`
	// httpGet sends a request to the container.
	// +optional
	HTTPGet *corev1.HTTPGetAction `json:"httpGet,omitempty"`
	// tcpSocket does nothing, as in kubelet.
	// +optional
	TCPSocket *corev1.TCPSocketAction `json:"tcpSocket,omitempty"`
	// sleep waits.
	// +optional
	Sleep *corev1.SleepAction `json:"sleep,omitempty"`
}

// ContainerStatusContext identifies the container that ran when a request was created.
type ContainerStatusContext struct {
	// containerID with the name of the runtime, such as containerd://... .
	ContainerID string `json:"containerID"`
	// restartCount of the container.
	RestartCount int32 `json:"restartCount"`
}

// FailurePolicy decides what happens if a container cannot be recreated. The default is Fail.
type FailurePolicy string

// Values of FailurePolicy. Empty means FailurePolicyFail.
const (
	// FailurePolicyFail completes the request.
	FailurePolicyFail FailurePolicy = "Fail"
	// FailurePolicyIgnore continues with the next container.
	FailurePolicyIgnore FailurePolicy = "Ignore"
)

// RecreateStrategy has options for the restart of containers.
type RecreateStrategy struct {
	// failurePolicy is Fail (the default) or Ignore.
	// +optional
	// +kubebuilder:validation:Enum=Fail;Ignore
	FailurePolicy FailurePolicy `json:"failurePolicy,omitempty"`
	// orderedRecreate stops a container only after the one before it has been recreated.
	// +optional
	OrderedRecreate bool `json:"orderedRecreate,omitempty"`
	// forceRecreate also stops a container that restarted by itself after the request was created.
	// +optional
	ForceRecreate bool `json:"forceRecreate,omitempty"`
	// terminationGracePeriodSeconds is the time for preStop and stop together. The default is the pod's.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be 0 or more"
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty"`
	// unreadyGracePeriodSeconds is how long the pod is not ready before the first container is stopped. Absent means
	// that the pod's readiness is not changed.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be 0 or more"
	UnreadyGracePeriodSeconds *int64 `json:"unreadyGracePeriodSeconds,omitempty"`
	// minStartedSeconds is how long a new container must have run to count as recreated. The default is 0.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be 0 or more"
	MinStartedSeconds int32 `json:"minStartedSeconds,omitempty"`
}

// RecreatePhase is the state of a request or of one of its containers. It is empty on a new request.
// +kubebuilder:validation:Enum="";Pending;Recreating;Succeeded;Failed;Completed
type RecreatePhase string

// Values of RecreatePhase.
const (
	// RecreatePending is a request that waits for its turn, or a container that is not stopped yet.
	RecreatePending RecreatePhase = "Pending"
	// RecreateRecreating is a request that the agent works on, or a container that is stopped or waits for kubelet to
	// start it.
	RecreateRecreating RecreatePhase = "Recreating"
	// RecreateSucceeded is a container that has been recreated.
	RecreateSucceeded RecreatePhase = "Succeeded"
	// RecreateFailed is a container that could not be stopped.
	RecreateFailed RecreatePhase = "Failed"
	// RecreateCompleted is a request that has ended. Its condition Complete or Failed shows success or failure.
	RecreateCompleted RecreatePhase = "Completed"
)

// ContainerRecreateRequestStatus has the progress of the node agent.
type ContainerRecreateRequestStatus struct {
	// phase is Pending, Recreating or Completed.
	// +optional
	Phase RecreatePhase `json:"phase,omitempty"`
	// completionTime is when the request ended.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// message is the reason why the request ended early.
	// +optional
	Message string `json:"message,omitempty"`
	// lastHeartbeatTime is when the node agent last reported that it works on the request, by the node's clock. The
	// agent renews it every 20 seconds.
	// +optional
	LastHeartbeatTime *metav1.Time `json:"lastHeartbeatTime,omitempty"`
	// containerRecreateStates are the states of the containers, in the order of the spec.
	// +optional
	ContainerRecreateStates []ContainerRecreateState `json:"containerRecreateStates,omitempty"`
	// containerStatusSnapshot is a copy of the pod's status for the containers that started after the request was created.
	// +optional
	ContainerStatusSnapshot []ContainerStatusSnapshot `json:"containerStatusSnapshot,omitempty"`
	// conditions are the latest observations of the state, at most one of each type. Complete is True when each container
	// was recreated, and Failed when the request has ended otherwise.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ContainerRecreateState is the state of one container.
type ContainerRecreateState struct {
	// name of the container.
	Name string `json:"name"`
	// phase is Pending, Recreating, Succeeded or Failed.
	Phase RecreatePhase `json:"phase"`
	// isKilled is true if the container was stopped for this request, or had restarted by itself.
	// +optional
	IsKilled bool `json:"isKilled,omitempty"`
	// containerID is the container that is being stopped: during its preStop hook, and with isKilled after the stop has begun.
	// +optional
	ContainerID string `json:"containerID,omitempty"`
	// message is the error of the container.
	// +optional
	Message string `json:"message,omitempty"`
}

// ContainerStatusSnapshot is a copy of the pod's status for a container.
type ContainerStatusSnapshot struct {
	// name of the container.
	Name string `json:"name"`
	// ready as in the pod's status.
	Ready bool `json:"ready"`
	// restartCount as in the pod's status.
	RestartCount int32 `json:"restartCount"`
	// containerID as in the pod's status.
	// +optional
	ContainerID string `json:"containerID,omitempty"`
}
