package daemonset

import (
	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/pods/inplace"

	"github.com/flotilla-project/flotilla/daemonset/internal/daemonset/plan"
)

// FeatureGates returns the part of the plan's settings that the feature gates and the cluster decide.
func FeatureGates(g features.Set, can inplace.Options) plan.FeatureGates {
	return plan.FeatureGates{
		PruneIneligibleNodes: g.Enabled(features.DaemonSetPruneIneligibleNodes),
		PreDownload:          g.Enabled(features.PreDownloadImageForDaemonSetUpdate),
		EnvFromMetadata:      can.EnvFromMetadata,
		Resize:               can.Resize,
		KeepMemoryLimits:     can.KeepMemoryLimits,
	}
}
