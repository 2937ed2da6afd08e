package features

import "k8s.io/component-base/featuregate"

// Name is the name of a feature gate, as written in --feature-gates.
type Name = featuregate.Feature

// The gates, in the order of the table that says their defaults. They are shared by all operators: one
// list of gates can be given to each of them.
const (
	// PodWebhook allows any pod admission at all.
	PodWebhook Name = "PodWebhook"
	// KruiseDaemon says that the node agent is installed; everything that needs it may be used.
	KruiseDaemon Name = "KruiseDaemon"
	// DaemonWatchingPod lets the node agent watch the pods of its node.
	DaemonWatchingPod Name = "DaemonWatchingPod"
	// WorkloadSpread enables the WorkloadSpread kind.
	WorkloadSpread Name = "WorkloadSpread"
	// PodUnavailableBudgetDeleteGate guards pod deletion and eviction by budgets.
	PodUnavailableBudgetDeleteGate Name = "PodUnavailableBudgetDeleteGate"
	// PodUnavailableBudgetUpdateGate guards in-place pod updates by budgets.
	PodUnavailableBudgetUpdateGate Name = "PodUnavailableBudgetUpdateGate"
	// InPlaceUpdateEnvFromMetadata updates env values that come from pod metadata in place.
	InPlaceUpdateEnvFromMetadata Name = "InPlaceUpdateEnvFromMetadata"
	// StatefulSetAutoDeletePVC lets a StatefulSet delete claims by its retention policy.
	StatefulSetAutoDeletePVC Name = "StatefulSetAutoDeletePVC"
	// StatefulSetStartOrdinal honours the first ordinal of a StatefulSet.
	StatefulSetStartOrdinal Name = "StatefulSetStartOrdinal"
	// PodIndexLabel labels the pods of a StatefulSet with their index.
	PodIndexLabel Name = "PodIndexLabel"
	// PodProbeMarkerGate enables the PodProbeMarker kind.
	PodProbeMarkerGate Name = "PodProbeMarkerGate"
	// InPlaceWorkloadVerticalScaling lets workloads resize pods in place.
	InPlaceWorkloadVerticalScaling Name = "InPlaceWorkloadVerticalScaling"
	// InPlacePodVerticalScaling says that the cluster has pod resize: budgets guard it too.
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
	// KruisePodReadinessGate gives all pods the readiness gate, not only those of our workloads.
	KruisePodReadinessGate Name = "KruisePodReadinessGate"
	// PreDownloadImageForInPlaceUpdate pulls images on the nodes before an in-place update.
	PreDownloadImageForInPlaceUpdate Name = "PreDownloadImageForInPlaceUpdate"
	// PreDownloadImageForDaemonSetUpdate pulls images on the nodes before a DaemonSet update.
	PreDownloadImageForDaemonSetUpdate Name = "PreDownloadImageForDaemonSetUpdate"
	// ImagePullJobGate enables the image pull jobs.
	ImagePullJobGate Name = "ImagePullJobGate"
	// StatefulSetAutoResizePVCGate resizes claims when a StatefulSet's claim template grows.
	StatefulSetAutoResizePVCGate Name = "StatefulSetAutoResizePVCGate"
	// DaemonSetPruneIneligibleNodes removes pods from nodes that no longer fit.
	DaemonSetPruneIneligibleNodes Name = "DaemonSetPruneIneligibleNodes"
	// ResourcesDeletionProtection refuses the deletion of protected objects.
	ResourcesDeletionProtection Name = "ResourcesDeletionProtection"
	// DeletionProtectionForCRDCascadingGate protects CRDs whose objects still exist.
	DeletionProtectionForCRDCascadingGate Name = "DeletionProtectionForCRDCascadingGate"
	// TemplateNoDefaults switches the defaulting of pod templates off.
	TemplateNoDefaults Name = "TemplateNoDefaults"
	// DefaultHostNetworkHostPortsInPodTemplates defaults host ports in templates with host network.
	DefaultHostNetworkHostPortsInPodTemplates Name = "DefaultHostNetworkHostPortsInPodTemplates"
	// EnableExternalCerts takes the webhook certificates from elsewhere and only checks them.
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

// defaults returns the table of all gates. What is on counts as beta and what is off as alpha, so that AllBeta and
// AllAlpha mean what a reader of the table expects.
func defaults() map[Name]featuregate.FeatureSpec {
	on := featuregate.FeatureSpec{Default: true, PreRelease: featuregate.Beta}
	off := featuregate.FeatureSpec{Default: false, PreRelease: featuregate.Alpha}

	return map[Name]featuregate.FeatureSpec{
		PodWebhook:                     on,
		KruiseDaemon:                   on,
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

		CloneSetShortHash:                         off,
		CloneSetPartitionRollback:                 off,
		CloneSetEventHandlerOptimization:          off, // consulted by nobody: the good behaviour is the behaviour
		RecreatePodWhenChangeVCTInCloneSetGate:    off,
		PreparingUpdateAsUpdate:                   off,
		ForceDeleteTimeoutExpectationGate:         off, // consulted by nobody: there are no such expectations
		KruisePodReadinessGate:                    off,
		PreDownloadImageForInPlaceUpdate:          off,
		PreDownloadImageForDaemonSetUpdate:        off,
		ImagePullJobGate:                          off,
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

// cascade is one dependency between gates: when the condition holds, all gates of effect get value.
type cascade struct {
	when   Name // the gate that decides
	is     bool // the value at which it decides
	effect []Name
	value  bool
}

// cascades returns the dependencies between feature gates in the order in which they are applied, after parsing.
func cascades() []cascade {
	return []cascade{
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
