package features

import "k8s.io/component-base/featuregate"

// Name is the name of a feature gate, as written in --feature-gates.
type Name = featuregate.Feature

// The feature gates, in the order of the table of their defaults. All operators share them: one list of feature gates
// can be given to each of them.
const (
	// PodWebhook allows any pod admission at all.
	PodWebhook Name = "PodWebhook"
	// KruiseDaemon means that the node agent is installed; everything that needs it may be used.
	KruiseDaemon Name = "KruiseDaemon"
	// DaemonWatchingPod lets the node agent watch the pods of its node.
	DaemonWatchingPod Name = "DaemonWatchingPod"
	// WorkloadSpread enables the WorkloadSpread kind.
	WorkloadSpread Name = "WorkloadSpread"
	// PodUnavailableBudgetDeleteGate enforces budgets on pod deletion and eviction.
	PodUnavailableBudgetDeleteGate Name = "PodUnavailableBudgetDeleteGate"
	// PodUnavailableBudgetUpdateGate enforces budgets on in-place pod updates.
	PodUnavailableBudgetUpdateGate Name = "PodUnavailableBudgetUpdateGate"
	// InPlaceUpdateEnvFromMetadata updates env values that come from pod metadata in place.
	InPlaceUpdateEnvFromMetadata Name = "InPlaceUpdateEnvFromMetadata"
	// StatefulSetAutoDeletePVC lets a StatefulSet delete claims by its retention policy.
	StatefulSetAutoDeletePVC Name = "StatefulSetAutoDeletePVC"
	// StatefulSetStartOrdinal enables spec.ordinals.start of a StatefulSet.
	StatefulSetStartOrdinal Name = "StatefulSetStartOrdinal"
	// PodIndexLabel labels the pods of a StatefulSet with their index.
	PodIndexLabel Name = "PodIndexLabel"
	// PodProbeMarkerGate enables the PodProbeMarker kind.
	PodProbeMarkerGate Name = "PodProbeMarkerGate"
	// InPlaceWorkloadVerticalScaling lets workloads resize pods in place.
	InPlaceWorkloadVerticalScaling Name = "InPlaceWorkloadVerticalScaling"
	// InPlacePodVerticalScaling lets budgets decide about resizes as operation RESIZE; without it a resize counts as UPDATE.
	InPlacePodVerticalScaling Name = "InPlacePodVerticalScaling"

	// CloneSetShortHash shortens the revision hash in the labels of CloneSet pods.
	CloneSetShortHash Name = "CloneSetShortHash"
	// CloneSetPartitionRollback takes pods back to the old revision when a partition is raised.
	CloneSetPartitionRollback Name = "CloneSetPartitionRollback"
	// CloneSetEventHandlerOptimization drops pod events that change nothing for a CloneSet.
	CloneSetEventHandlerOptimization Name = "CloneSetEventHandlerOptimization"
	// RecreatePodWhenChangeVCTInCloneSetGate recreates pods when a claim template changes.
	RecreatePodWhenChangeVCTInCloneSetGate Name = "RecreatePodWhenChangeVCTInCloneSetGate"
	// PreparingUpdateAsUpdate counts a pod in PreparingUpdate as updated while scaling.
	PreparingUpdateAsUpdate Name = "PreparingUpdateAsUpdate"
	// ForceDeleteTimeoutExpectationGate releases expectations that were never observed.
	ForceDeleteTimeoutExpectationGate Name = "ForceDeleteTimeoutExpectationGate"
	// KruisePodReadinessGate adds the readiness gate to all pods, not only to the pods of our workloads.
	KruisePodReadinessGate Name = "KruisePodReadinessGate"
	// PreDownloadImageForInPlaceUpdate pulls images on the nodes before an in-place update.
	PreDownloadImageForInPlaceUpdate Name = "PreDownloadImageForInPlaceUpdate"
	// PreDownloadImageForDaemonSetUpdate pulls images on the nodes before a DaemonSet update.
	PreDownloadImageForDaemonSetUpdate Name = "PreDownloadImageForDaemonSetUpdate"
	// ImagePullJobGate enables the image pull jobs.
	ImagePullJobGate Name = "ImagePullJobGate"
	// StatefulSetAutoResizePVCGate resizes claims when a StatefulSet's claim template grows.
	StatefulSetAutoResizePVCGate Name = "StatefulSetAutoResizePVCGate"
	// DaemonSetPruneIneligibleNodes leaves the pods of ineligible nodes out of updates of a DaemonSet.
	DaemonSetPruneIneligibleNodes Name = "DaemonSetPruneIneligibleNodes"
	// UpdateWarnings answers the edit of a pod template with a warning that tells the effect on the pods.
	UpdateWarnings Name = "UpdateWarnings"
	// ResourcesDeletionProtection refuses the deletion of protected objects.
	ResourcesDeletionProtection Name = "ResourcesDeletionProtection"
	// DeletionProtectionForCRDCascadingGate protects CRDs while their objects exist.
	DeletionProtectionForCRDCascadingGate Name = "DeletionProtectionForCRDCascadingGate"
	// TemplateNoDefaults disables the defaulting of pod templates.
	TemplateNoDefaults Name = "TemplateNoDefaults"
	// DefaultHostNetworkHostPortsInPodTemplates defaults host ports in templates with host network.
	DefaultHostNetworkHostPortsInPodTemplates Name = "DefaultHostNetworkHostPortsInPodTemplates"
	// EnableExternalCerts uses webhook certificates that another program maintains, and only checks them.
	EnableExternalCerts Name = "EnableExternalCerts"
	// SidecarTerminator ends sidecars when the main containers of a job's pod are done.
	SidecarTerminator Name = "SidecarTerminator"
	// SidecarSetPatchPodMetadataDefaultsAllowed lets any SidecarSet patch pod metadata.
	SidecarSetPatchPodMetadataDefaultsAllowed Name = "SidecarSetPatchPodMetadataDefaultsAllowed"
	// EnableSortSidecarContainerByName orders injected sidecars by name.
	EnableSortSidecarContainerByName Name = "EnableSortSidecarContainerByName"
	// ResourceDistributionGate enables the ResourceDistribution kind.
	ResourceDistributionGate Name = "ResourceDistributionGate"
	// EnhancedLivenessProbe moves liveness probes to the node agent.
	EnhancedLivenessProbe Name = "EnhancedLivenessProbe"
	// EnablePodProbeMarkerOnServerless serves PodProbeMarker on serverless nodes.
	EnablePodProbeMarkerOnServerless Name = "EnablePodProbeMarkerOnServerless"
)

// defaults returns the table of all feature gates. Those that are on count as beta and those that are off as alpha, so
// that AllBeta and AllAlpha have the meaning that a reader of the table expects.
func defaults() map[Name]featuregate.FeatureSpec {
	on := featuregate.FeatureSpec{Default: true, PreRelease: featuregate.Beta}
	off := featuregate.FeatureSpec{Default: false, PreRelease: featuregate.Alpha}

	return map[Name]featuregate.FeatureSpec{
		PodWebhook:                     on,
		KruiseDaemon:                   on,
		ImagePullJobGate:               on,
		DaemonWatchingPod:              on,
		WorkloadSpread:                 on,
		PodUnavailableBudgetDeleteGate: on,
		PodUnavailableBudgetUpdateGate: on, // OpenKruise: off
		InPlaceUpdateEnvFromMetadata:   on,
		StatefulSetAutoDeletePVC:       on,
		StatefulSetStartOrdinal:        on, // OpenKruise: off
		PodIndexLabel:                  on,
		PodProbeMarkerGate:             on,
		InPlaceWorkloadVerticalScaling: on, // OpenKruise: off; used where pods/resize is served
		InPlacePodVerticalScaling:      on, // OpenKruise: off; used where pods/resize is served
		UpdateWarnings:                 on, // OpenKruise has none

		CloneSetShortHash:                         off,
		CloneSetPartitionRollback:                 off,
		CloneSetEventHandlerOptimization:          off, // unused: the optimization is always on
		RecreatePodWhenChangeVCTInCloneSetGate:    off,
		PreparingUpdateAsUpdate:                   off,
		ForceDeleteTimeoutExpectationGate:         off, // unused: there are no such expectations
		KruisePodReadinessGate:                    off,
		PreDownloadImageForInPlaceUpdate:          off,
		PreDownloadImageForDaemonSetUpdate:        off,
		StatefulSetAutoResizePVCGate:              off,
		DaemonSetPruneIneligibleNodes:             off,
		ResourcesDeletionProtection:               off,
		DeletionProtectionForCRDCascadingGate:     off,
		TemplateNoDefaults:                        off,
		DefaultHostNetworkHostPortsInPodTemplates: off,
		EnableExternalCerts:                       off,
		SidecarTerminator:                         off,
		SidecarSetPatchPodMetadataDefaultsAllowed: off,
		EnableSortSidecarContainerByName:          off,
		ResourceDistributionGate:                  off,
		EnhancedLivenessProbe:                     off,
		EnablePodProbeMarkerOnServerless:          off,
	}
}

// dependency is a dependency between feature gates: when the condition is true, all feature gates of effect get value.
type dependency struct {
	when   Name // the feature gate of the condition
	is     bool // its value
	effect []Name
	value  bool
}

// dependencies returns the dependencies between feature gates in the order in which they are applied, after parsing.
func dependencies() []dependency {
	return []dependency{
		{when: PodWebhook, is: false, value: false, effect: []Name{
			KruisePodReadinessGate, PodUnavailableBudgetDeleteGate, PodUnavailableBudgetUpdateGate, WorkloadSpread,
			SidecarSetPatchPodMetadataDefaultsAllowed, EnhancedLivenessProbe, EnablePodProbeMarkerOnServerless,
		}},
		{when: KruiseDaemon, is: false, value: false, effect: []Name{
			PreDownloadImageForInPlaceUpdate, PreDownloadImageForDaemonSetUpdate, DaemonWatchingPod, InPlaceUpdateEnvFromMetadata,
			PodProbeMarkerGate, SidecarTerminator, ImagePullJobGate, EnhancedLivenessProbe,
		}},
		{when: PreDownloadImageForInPlaceUpdate, is: true, value: true, effect: []Name{ImagePullJobGate}},
		{when: PreDownloadImageForDaemonSetUpdate, is: true, value: true, effect: []Name{ImagePullJobGate}},
		{when: ResourcesDeletionProtection, is: false, value: false, effect: []Name{DeletionProtectionForCRDCascadingGate}},
	}
}
