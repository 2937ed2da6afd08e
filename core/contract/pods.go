package contract

// Labels on pods.
const (
	// RevisionLabel is the revision of a pod, "controller-revision-hash". CloneSet writes the full revision name (only the
	// hash with feature gate CloneSetShortHash); readers compare the text after the last "-". Written by the workload
	// operator, read by all.
	RevisionLabel = "controller-revision-hash"
	// TemplateHashLabel is always the short hash of the pod's revision. Written by CloneSet.
	TemplateHashLabel = "pod-template-hash"
	// InstanceIDLabel links a pod of a CloneSet with its claims; it stands on both. Written and read by CloneSet.
	InstanceIDLabel = "apps.kruise.io/cloneset-instance-id"
	// SpecifiedDeleteLabel asks the workload to replace the pod. Its presence counts, not its
	// value. Written by users and operators, read by the workload operators.
	SpecifiedDeleteLabel = "apps.kruise.io/specified-delete"
	// LifecycleStateLabel is the lifecycle state of a pod, one of the LifecycleState values.
	// Absent means Normal. Written by the workload operators, read by them and by controllers of hooks.
	LifecycleStateLabel = "lifecycle.apps.kruise.io/state"
)

// ControlLabels are the labels by which the workload operators describe a pod and are asked for its replacement. They
// belong to one pod: in a pod template, and so in a selector, they mean nothing that could be followed.
func ControlLabels() []string {
	return []string{RevisionLabel, InstanceIDLabel, SpecifiedDeleteLabel, LifecycleStateLabel}
}

// ControlAnnotations are the records that operators and the node agent keep of one pod. In a pod template they are
// copies of another pod's.
func ControlAnnotations() []string {
	return []string{
		LifecycleTimestampAnnotation, PreNormalPendingAnnotation, InPlaceUpdateStateAnnotation, LegacyInPlaceUpdateStateAnnotation,
		InPlaceUpdateGraceAnnotation, LegacyInPlaceUpdateGraceAnnotation, RuntimeContainersMetaAnnotation,
		ContainerLaunchPriorityCompletedAnnotation,
	}
}

// ResizeManagerPrefix begins the field manager of the resizes that updates in place write; the short hash of the
// revision follows that the update leads to. In metadata.managedFields it shows which client wrote resources last, and
// for which revision.
const ResizeManagerPrefix = "flotilla-resize-"

// Annotations on pods.
const (
	// LifecycleTimestampAnnotation is the time of the last change of the lifecycle state, RFC 3339.
	// Written with LifecycleStateLabel, read by the workload operators and by users.
	LifecycleTimestampAnnotation = "lifecycle.apps.kruise.io/timestamp"
	// PreNormalPendingAnnotation stands on a pod that has left state PreparingNormal, for an update or to be deleted,
	// before its hook preNormal has let it: it goes back there. Written and read by the workload operators.
	PreNormalPendingAnnotation = "lifecycle.apps.kruise.io/pre-normal-pending"
	// InPlaceUpdateStateAnnotation is the JSON of an in-place update that runs or ran last. Written and
	// read by the in-place engine of the workload operators.
	InPlaceUpdateStateAnnotation = "apps.kruise.io/inplace-update-state"
	// LegacyInPlaceUpdateStateAnnotation is read when InPlaceUpdateStateAnnotation is absent and
	// removed when that one is written.
	LegacyInPlaceUpdateStateAnnotation = "inplace-update-state"
	// InPlaceUpdateGraceAnnotation is the JSON of an in-place update that waits for its grace period.
	// Written and read by the in-place engine of the workload operators.
	InPlaceUpdateGraceAnnotation = "apps.kruise.io/inplace-update-grace"
	// LegacyInPlaceUpdateGraceAnnotation relates to InPlaceUpdateGraceAnnotation as its state sibling does.
	LegacyInPlaceUpdateGraceAnnotation = "inplace-update-grace"
	// RuntimeContainersMetaAnnotation carries the hashes of the running containers. Written by the
	// node agent through pods/status, read by the in-place engine.
	RuntimeContainersMetaAnnotation = "apps.kruise.io/runtime-containers-meta"
	// RestartInPlaceAnnotation in a pod template restarts containers in place whenever its value changes: one word, any
	// text that differs from the one before, and then the names of containers and native sidecars, separated by spaces;
	// none names all.
	// Written by users, read by the in-place engine.
	RestartInPlaceAnnotation = "apps.kruise.io/restart-in-place"
	// ContainerLaunchPriorityAnnotation set to LaunchOrdered starts containers in list order.
	// Written by users, read by the pod webhook of daemon.
	ContainerLaunchPriorityAnnotation = "apps.kruise.io/container-launch-priority"
	// ContainerLaunchPriorityCompletedAnnotation shows that all launch barriers are released. Written and read by the
	// manager of daemon.
	ContainerLaunchPriorityCompletedAnnotation = "apps.kruise.io/container-launch-priority-completed"
	// AutoscalerDaemonSetPodAnnotation set to "true" shows the cluster autoscaler that the pod belongs to a daemon set.
	// Written by the DaemonSet operator.
	AutoscalerDaemonSetPodAnnotation = "cluster-autoscaler.kubernetes.io/daemonset-pod"
	// PodDeletionCostAnnotation is core Kubernetes' deletion cost, an int32 as text.
	// Written by users, read by the workload operators.
	PodDeletionCostAnnotation = "controller.kubernetes.io/pod-deletion-cost"
)

// SpecifiedDeleteForUpdate is the value of SpecifiedDeleteLabel on a pod of a CloneSet that makes way for one of another
// revision and is held by its hook preDelete. Written and read by CloneSet, which takes such a pod back in a pause.
const SpecifiedDeleteForUpdate = "update"

// LaunchOrdered is the value of ContainerLaunchPriorityAnnotation that has an effect.
const LaunchOrdered = "Ordered"

// Values of LifecycleStateLabel.
const (
	LifecyclePreparingNormal = "PreparingNormal"
	LifecycleNormal          = "Normal"
	LifecyclePreparingUpdate = "PreparingUpdate"
	LifecycleUpdating        = "Updating"
	LifecycleUpdated         = "Updated"
	LifecyclePreparingDelete = "PreparingDelete"
)

// Readiness gates and the pod conditions of the same name.
const (
	// InPlaceUpdateReady is False while an in-place update takes the pod out of service. The workload operator adds the
	// readiness gate to pods that it creates; the in-place engine writes it.
	InPlaceUpdateReady = "InPlaceUpdateReady"
	// KruisePodReady is False while anybody holds a not-ready key on the pod; its message is the
	// JSON list of the keys. Written by lifecycle hooks and by container recreation.
	KruisePodReady = "KruisePodReady"
)

// SidecarTerminated is the condition of a pod with main containers that have ended and sidecars that are being stopped:
// the pod has its final phase while containers still run. Written by SidecarTerminator of jobs, read by daemon, which
// accepts ContainerRecreateRequests for such a pod.
const SidecarTerminated = "SidecarTerminated"

// Not-ready keys of lifecycle hooks, held under user agent LifecycleUserAgent.
const (
	LifecycleUserAgent = "Lifecycle"
	PreDeleteHookKey   = "preDeleteHook"
	PreUpdateHookKey   = "preUpdateHook"
)

// Environment variables on containers.
const (
	// ContainerPriorityEnv is a container's launch priority, an integer; higher starts first.
	ContainerPriorityEnv = "KRUISE_CONTAINER_PRIORITY"
	// ContainerBarrierEnv is injected: a configMapKeyRef with ContainerBarrierKeyPrefix and the priority as the key, in
	// the ConfigMap named by the pod and ContainerBarrierConfigMapSuffix.
	ContainerBarrierEnv             = "KRUISE_CONTAINER_BARRIER"
	ContainerBarrierKeyPrefix       = "p_"
	ContainerBarrierConfigMapSuffix = "-barrier"
	// SidecarSetVersionEnv and SidecarSetVersionAltEnv are excluded from env-from-metadata hashes.
	SidecarSetVersionEnv    = "SIDECARSET_VERSION"
	SidecarSetVersionAltEnv = "SIDECARSET_VERSION_ALT"
)
