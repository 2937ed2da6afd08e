package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/workloads/model"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// Snapshot is everything that a plan for one StatefulSet is made from, read-only. Its orphans are members by name
// (IsMember).
type Snapshot struct {
	model.Snapshot[*v1beta1.StatefulSet]
	// Claims are the claims that the set owns, and those that are deleted with its ordinals. They are read with feature
	// gate AutoDeletePVC only.
	Claims []*corev1.PersistentVolumeClaim
	// Expandable has each StorageClass that exists, and whether its volumes may grow. It is read with feature gate
	// AutoResizePVC and strategy OnPodRollingUpdate only.
	Expandable map[string]bool
	// ClassesErr is why Expandable could not be read. It blocks the growth of claims, and nothing else.
	ClassesErr error
	// RetryFailedAt is when a failed pod may be replaced, by its name. One without an entry need not wait.
	RetryFailedAt map[string]time.Time
	// FeatureGates are the feature gates that the plan depends on.
	FeatureGates FeatureGates

	observed *observed // nil before Observed
}

// Plan is the result of one pass over a StatefulSet: the changes that it wants.
type Plan = model.Plan

// FeatureGates are the feature gates and options that change plans.
type FeatureGates struct {
	// StartOrdinal is StatefulSetStartOrdinal: spec.ordinals.start counts.
	StartOrdinal bool
	// PodIndexLabel puts the ordinal on pods as a label.
	PodIndexLabel bool
	// AutoDeletePVC is StatefulSetAutoDeletePVC: spec.persistentVolumeClaimRetentionPolicy counts.
	AutoDeletePVC bool
	// AutoResizePVC is StatefulSetAutoResizePVCGate: spec.volumeClaimUpdateStrategy counts.
	AutoResizePVC bool
	// PreDownload is PreDownloadImageForInPlaceUpdate: images are pulled on the nodes ahead of an update.
	PreDownload bool
	// EnvFromMetadata is InPlaceUpdateEnvFromMetadata.
	EnvFromMetadata bool
	// Resize allows changing resources in place: InPlaceWorkloadVerticalScaling where pods/resize is served.
	Resize bool
	// KeepMemoryLimits is true if the cluster lowers no memory limit of a container that does not restart for it.
	KeepMemoryLimits bool
	// PreparingUpdateAsUpdate counts pods in PreparingUpdate as updated in unordered updates.
	PreparingUpdateAsUpdate bool
	// UnkeyedFirst updates pods with none of the orderPriority keys first instead of last.
	UnkeyedFirst bool
}
