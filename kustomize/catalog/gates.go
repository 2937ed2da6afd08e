package catalog

import "slices"

// KnowsGate reports whether a manager with the version of its manifests starts with a feature gate: it accepts the name of every
// gate that any manager reads, and the names that managers accept for compatibility with OpenKruise.
func KnowsGate(name string) bool {
	for _, read := range gatesRead() {
		if slices.Contains(read, name) {
			return true
		}
	}
	return slices.Contains(gatesAccepted(), name)
}

// gatesAccepted are the feature gates that every manager accepts and none reads, and the two names that stand for many gates.
func gatesAccepted() []string {
	return []string{
		"AllAlpha", "AllBeta",
		"CloneSetEventHandlerOptimization", "DefaultHostNetworkHostPortsInPodTemplates", "DeletionProtectionForCRDCascadingGate",
		"EnablePodProbeMarkerOnServerless", "EnableSortSidecarContainerByName", "EnhancedLivenessProbe",
		"ForceDeleteTimeoutExpectationGate", "PodProbeMarkerGate", "ResourceDistributionGate",
		"SidecarSetPatchPodMetadataDefaultsAllowed", "TemplateNoDefaults",
	}
}

// gatesRead are the feature gates that the managers read. Each manager accepts the name of every feature gate; the others change
// nothing about it.
func gatesRead() map[string][]string {
	return map[string][]string{
		"budget": {
			"EnableExternalCerts", "InPlacePodVerticalScaling", "PodUnavailableBudgetDeleteGate", "PodUnavailableBudgetUpdateGate",
			"PodWebhook",
		},
		"cloneset": {
			"CloneSetPartitionRollback", "CloneSetShortHash", "EnableExternalCerts", "InPlaceUpdateEnvFromMetadata",
			"InPlaceWorkloadVerticalScaling", "KruiseDaemon", "PreDownloadImageForInPlaceUpdate", "PreparingUpdateAsUpdate",
			"RecreatePodWhenChangeVCTInCloneSetGate", "ResourcesDeletionProtection", "UpdateWarnings",
		},
		"daemon": {
			"DaemonWatchingPod", "EnableExternalCerts", "InPlaceUpdateEnvFromMetadata", "KruiseDaemon", "KruisePodReadinessGate",
			"PodWebhook",
		},
		"daemonset": {
			"DaemonSetPruneIneligibleNodes", "EnableExternalCerts", "InPlaceUpdateEnvFromMetadata", "InPlaceWorkloadVerticalScaling",
			"KruiseDaemon", "PreDownloadImageForDaemonSetUpdate", "ResourcesDeletionProtection", "UpdateWarnings",
		},
		"jobs": {
			"EnableExternalCerts", "ImagePullJobGate", "KruiseDaemon", "SidecarTerminator",
		},
		"spread": {
			"EnableExternalCerts", "PodWebhook", "WorkloadSpread",
		},
		"statefulset": {
			"EnableExternalCerts", "InPlaceUpdateEnvFromMetadata", "InPlaceWorkloadVerticalScaling", "KruiseDaemon", "PodIndexLabel",
			"PreDownloadImageForInPlaceUpdate", "PreparingUpdateAsUpdate", "ResourcesDeletionProtection", "StatefulSetAutoDeletePVC",
			"StatefulSetAutoResizePVCGate", "StatefulSetStartOrdinal", "UpdateWarnings",
		},
	}
}
