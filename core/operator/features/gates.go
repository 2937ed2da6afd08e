package features

import (
	"fmt"
	"slices"

	"k8s.io/component-base/featuregate"
)

// Name is the name of a feature gate, as written in --feature-gates.
type Name = featuregate.Feature

// Gate is a feature gate that an operator reads.
type Gate struct {
	// Name is what users write.
	Name Name
	// Default is its value unless it is set. A gate that is on counts as beta and one that is off as alpha, so that AllBeta and
	// AllAlpha have the meaning that a reader of the defaults expects.
	Default bool
	// Help says what is so while the gate is on, as a part of a sentence.
	Help string
	// Needs is a feature gate that this one is off without, whatever sets it: PodWebhook or KruiseDaemon. Optional.
	Needs Name
	// ImpliedBy are feature gates of core or OpenKruise, each of which turns this one on. They need what this one needs, and are
	// off by default.
	ImpliedBy []Name
}

// The feature gates that several operators read.
const (
	// PodWebhook allows any pod admission at all.
	PodWebhook Name = "PodWebhook"
	// KruiseDaemon means that the node agent is installed; everything that needs it may be used.
	KruiseDaemon Name = "KruiseDaemon"
	// InPlaceUpdateEnvFromMetadata updates env values that come from pod metadata in place.
	InPlaceUpdateEnvFromMetadata Name = "InPlaceUpdateEnvFromMetadata"
	// InPlaceWorkloadVerticalScaling lets workloads resize pods in place.
	InPlaceWorkloadVerticalScaling Name = "InPlaceWorkloadVerticalScaling"
	// PreparingUpdateAsUpdate counts a pod in PreparingUpdate as updated.
	PreparingUpdateAsUpdate Name = "PreparingUpdateAsUpdate"
	// PreDownloadImageForInPlaceUpdate pulls images on the nodes before an in-place update.
	PreDownloadImageForInPlaceUpdate Name = "PreDownloadImageForInPlaceUpdate"
	// UpdateWarnings answers the edit of a pod template with a warning that tells the effect on the pods.
	UpdateWarnings Name = "UpdateWarnings"
	// ResourcesDeletionProtection refuses the deletion of protected objects.
	ResourcesDeletionProtection Name = "ResourcesDeletionProtection"
	// EnableExternalCerts uses webhook certificates that another program maintains, and only checks them.
	EnableExternalCerts Name = "EnableExternalCerts"
)

// shared returns the feature gates that several operators read. Every process knows their values.
func shared() []Gate {
	return []Gate{
		{Name: PodWebhook, Default: true, Help: "webhooks for pods are active"},
		{Name: KruiseDaemon, Default: true, Help: "the node agent may be used"},
		{Name: InPlaceUpdateEnvFromMetadata, Default: true, Help: "env values that come from pod metadata are updated in place", Needs: KruiseDaemon},
		// OpenKruise: off; used where pods/resize is served.
		{Name: InPlaceWorkloadVerticalScaling, Default: true, Help: "workloads resize pods in place"},
		{Name: PreparingUpdateAsUpdate, Help: "a pod in state PreparingUpdate counts as updated"},
		{Name: PreDownloadImageForInPlaceUpdate, Help: "images are pulled on the nodes before an in-place update", Needs: KruiseDaemon},
		// OpenKruise has none.
		{Name: UpdateWarnings, Default: true, Help: "the edit of a pod template is answered with its effect on the pods"},
		{Name: ResourcesDeletionProtection, Help: "protected objects cannot be deleted"},
		{Name: EnableExternalCerts, Help: "webhook certificates are maintained by another program"},
	}
}

// Shared returns those of the feature gates of several operators that have the names. It panics on another name, which is a bug.
func Shared(names ...Name) []Gate {
	var found []Gate
	for _, name := range names {
		i := slices.IndexFunc(shared(), func(g Gate) bool { return g.Name == name })
		if i < 0 {
			panic(fmt.Sprintf("feature gate %s is none of core", name))
		}
		found = append(found, shared()[i])
	}
	return found
}

// accepted returns the other feature gates of OpenKruise. Each operator accepts all of them and ignores those that it does not
// read, so that one list of feature gates can be given to all operators.
func accepted() []Name {
	return []Name{
		"CloneSetEventHandlerOptimization", // the optimization is always on
		"CloneSetPartitionRollback",
		"CloneSetShortHash",
		"DaemonSetPruneIneligibleNodes",
		"DaemonWatchingPod",
		"DefaultHostNetworkHostPortsInPodTemplates",
		"DeletionProtectionForCRDCascadingGate",
		"EnablePodProbeMarkerOnServerless",
		"EnableSortSidecarContainerByName",
		"EnhancedLivenessProbe",
		"ForceDeleteTimeoutExpectationGate", // there are no such expectations
		"ImagePullJobGate",
		"InPlacePodVerticalScaling",
		"KruisePodReadinessGate",
		"PodIndexLabel",
		"PodProbeMarkerGate",
		"PodUnavailableBudgetDeleteGate",
		"PodUnavailableBudgetUpdateGate",
		"PreDownloadImageForDaemonSetUpdate",
		"RecreatePodWhenChangeVCTInCloneSetGate",
		"ResourceDistributionGate",
		"SidecarSetPatchPodMetadataDefaultsAllowed",
		"SidecarTerminator",
		"StatefulSetAutoDeletePVC",
		"StatefulSetAutoResizePVCGate",
		"StatefulSetStartOrdinal",
		"TemplateNoDefaults",
		"WorkloadSpread",
	}
}
