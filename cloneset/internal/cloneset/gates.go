package cloneset

import (
	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/pods/inplace"

	"github.com/flotilla-project/flotilla/cloneset/internal/cloneset/plan"
	"github.com/flotilla-project/flotilla/cloneset/internal/featuregates"
)

// FeatureGates returns the part of the plan's settings that the feature gates and the cluster decide.
func FeatureGates(g features.Set, can inplace.Options) plan.FeatureGates {
	return plan.FeatureGates{
		PartitionRollback:       g.Enabled(featuregates.CloneSetPartitionRollback),
		ShortHash:               g.Enabled(featuregates.CloneSetShortHash),
		PreparingUpdateAsUpdate: g.Enabled(features.PreparingUpdateAsUpdate),
		RecreateOnClaimChange:   g.Enabled(featuregates.RecreatePodWhenChangeVCTInCloneSetGate),
		PreDownload:             g.Enabled(features.PreDownloadImageForInPlaceUpdate),
		EnvFromMetadata:         can.EnvFromMetadata,
		Resize:                  can.Resize,
		KeepMemoryLimits:        can.KeepMemoryLimits,
	}
}
