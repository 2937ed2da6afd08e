package daemonset

import (
	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/pods/inplace"

	"github.com/flotilla-project/flotilla/daemonset/internal/daemonset/plan"
	"github.com/flotilla-project/flotilla/daemonset/internal/featuregates"
)

// FeatureGates returns the part of the plan's settings that the feature gates and the cluster decide.
func FeatureGates(g features.Set, can inplace.Options) plan.FeatureGates {
	return plan.FeatureGates{
		PruneIneligibleNodes: g.Enabled(featuregates.DaemonSetPruneIneligibleNodes),
		PreDownload:          g.Enabled(featuregates.PreDownloadImageForDaemonSetUpdate),
		EnvFromMetadata:      can.EnvFromMetadata,
		Resize:               can.Resize,
		KeepMemoryLimits:     can.KeepMemoryLimits,
	}
}
