package catalog

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
