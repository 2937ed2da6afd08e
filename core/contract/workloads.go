package contract

// AppsGroup is the API group of the workloads and jobs.
const AppsGroup = "apps.kruise.io"

// Labels and annotations on ControllerRevisions.
const (
	// RevisionHashLabel is the hash in the name of a ControllerRevision.
	RevisionHashLabel = "controller.kubernetes.io/hash"
	// VolumeClaimTemplateHashAnnotation is the decimal hash of the claim templates at the time of the revision.
	VolumeClaimTemplateHashAnnotation = "kruise.io/cloneset-volumeclaimtemplate-hash"
	// ImagePreDownloadCreatedLabel shows that pull jobs were made for the revision.
	ImagePreDownloadCreatedLabel = "apps.kruise.io/pre-predownload-created"
	// ImagePreDownloadIgnoredLabel shows that the revision needs no pull jobs.
	ImagePreDownloadIgnoredLabel = "apps.kruise.io/image-predownload-ignored"
)

// Keys on workloads: of CloneSets in v1alpha1 where v1beta1 has fields, and of the other workloads in every version.
const (
	// ImagePreDownloadParallelismAnnotation is a number of nodes as text.
	ImagePreDownloadParallelismAnnotation = "apps.kruise.io/image-predownload-parallelism"
	// ImagePreDownloadTimeoutSecondsAnnotation is an int32 as text, in seconds.
	ImagePreDownloadTimeoutSecondsAnnotation = "apps.kruise.io/image-predownload-timeout-seconds"
	// ImagePreDownloadMinUpdatedReadyPodsAnnotation is a number of pods as text; of a StatefulSet or DaemonSet also a percentage.
	ImagePreDownloadMinUpdatedReadyPodsAnnotation = "apps.kruise.io/image-predownload-min-updated-ready-pods"
	// ScalingExcludePreparingDeleteLabel set to "true" on a v1alpha1 CloneSet leaves pods in
	// PreparingDelete out of the count of replicas.
	ScalingExcludePreparingDeleteLabel = "apps.kruise.io/cloneset-scaling-exclude-preparing-delete"
)

// DeleteProtectionLabel on a workload asks admission to refuse its deletion, with feature gate
// ResourcesDeletionProtection. Written by users.
const (
	DeleteProtectionLabel = "policy.kruise.io/delete-protection"
	// DeleteProtectionAlways refuses in any case.
	DeleteProtectionAlways = "Always"
	// DeleteProtectionCascading refuses while the workload has replicas.
	DeleteProtectionCascading = "Cascading"
)
