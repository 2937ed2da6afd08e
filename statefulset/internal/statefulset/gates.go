package statefulset

import (
	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/pods/inplace"

	"github.com/flotilla-project/flotilla/statefulset/internal/featuregates"
	"github.com/flotilla-project/flotilla/statefulset/internal/statefulset/plan"
)

// FeatureGates returns the part of the plan's settings that the feature gates and the cluster decide.
func FeatureGates(g features.Set, can inplace.Options) plan.FeatureGates {
	return plan.FeatureGates{
		StartOrdinal:            g.Enabled(featuregates.StatefulSetStartOrdinal),
		PodIndexLabel:           g.Enabled(featuregates.PodIndexLabel),
		AutoDeletePVC:           g.Enabled(featuregates.StatefulSetAutoDeletePVC),
		AutoResizePVC:           g.Enabled(featuregates.StatefulSetAutoResizePVCGate),
		PreDownload:             g.Enabled(features.PreDownloadImageForInPlaceUpdate),
		EnvFromMetadata:         can.EnvFromMetadata,
		Resize:                  can.Resize,
		KeepMemoryLimits:        can.KeepMemoryLimits,
		PreparingUpdateAsUpdate: g.Enabled(features.PreparingUpdateAsUpdate),
	}
}
