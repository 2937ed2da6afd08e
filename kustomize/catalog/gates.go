package catalog

import "slices"

// KnowsGate reports whether a manager with the version of its manifests starts with a feature gate: it accepts the name of every
// gate that any manager reads, and the names that managers accept for compatibility with OpenKruise.
func KnowsGate(name string) bool {
	read := func(f Feature) bool { return slices.Contains(f.Gates, name) }
	return slices.ContainsFunc(described(), read) || slices.Contains(gatesAccepted(), name)
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
