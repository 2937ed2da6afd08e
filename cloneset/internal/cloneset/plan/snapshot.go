package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/workloads/model"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// Snapshot is everything that a plan for one CloneSet is made from, read-only.
type Snapshot struct {
	model.Snapshot[*v1beta1.CloneSet]
	// Claims are the claims that the set owns.
	Claims []*corev1.PersistentVolumeClaim
	// RetryFailedAt is when pods may take the place of failed ones; zero where that need not wait.
	RetryFailedAt time.Time
	// FeatureGates are the feature gates that the plan depends on.
	FeatureGates FeatureGates

	observed *observed // nil before Observed
}

// Plan is the result of one pass over a CloneSet: the changes that it wants.
type Plan = model.Plan

// FeatureGates are the feature gates and options that change plans.
type FeatureGates struct {
	// PartitionRollback is CloneSetPartitionRollback: a raised partition takes updated pods back.
	PartitionRollback bool
	// ShortHash is CloneSetShortHash: the revision label holds the hash alone.
	ShortHash bool
	// PreparingUpdateAsUpdate counts pods in PreparingUpdate as updated while scaling.
	PreparingUpdateAsUpdate bool
	// RecreateOnClaimChange is RecreatePodWhenChangeVCTInCloneSetGate.
	RecreateOnClaimChange bool
	// EnvFromMetadata is InPlaceUpdateEnvFromMetadata.
	EnvFromMetadata bool
	// Resize allows changing resources in place: InPlaceWorkloadVerticalScaling where pods/resize is served.
	Resize bool
	// KeepMemoryLimits is true if the cluster lowers no memory limit of a container that does not restart for it.
	KeepMemoryLimits bool
	// PreDownload is PreDownloadImageForInPlaceUpdate: images are pulled on the nodes ahead of an update.
	PreDownload bool
	// UnkeyedFirst updates pods with none of the orderPriority keys first instead of last.
	UnkeyedFirst bool
	// ExcludePreparingDelete is the flag of that name: it acts as if every set had the field set.
	ExcludePreparingDelete bool
}
