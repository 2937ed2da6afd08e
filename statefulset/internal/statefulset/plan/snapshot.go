package plan

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/workloads/predownload"
	"github.com/flotilla-project/flotilla/core/workloads/revision"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// Snapshot is the read-only view of the world for one StatefulSet.
type Snapshot struct {
	// Set is the StatefulSet. What its admission fills in may be absent.
	Set *v1beta1.StatefulSet
	// Pods are the pods whose controller is the set, in any state and of any name. Those without label
	// statefulset.kubernetes.io/pod-name are not in the cache.
	Pods []*corev1.Pod
	// Orphans are pods without a controller that the selector matches, whose names say that they are
	// members (IsMember), and that are not terminating.
	Orphans []*corev1.Pod
	// Claim is the claim of the set's namespace with the name, whoever owns it; nil for none.
	Claim func(name string) *corev1.PersistentVolumeClaim
	// Revisions are the ControllerRevisions that the set owns.
	Revisions []*appsv1.ControllerRevision
	// OrphanRevisions are those without a controller that the selector matches, such as a built-in
	// StatefulSet leaves behind that was deleted without its pods. Those that were chosen, or that pods
	// are of, are adopted.
	OrphanRevisions []*appsv1.ControllerRevision
	// Chosen says which revisions are current and wanted, and whether the wanted one must be written.
	Chosen revision.Choice
	// Expandable says of each StorageClass that exists whether its volumes may grow. It is read with
	// gate AutoResizePVC and strategy OnPodRollingUpdate only.
	Expandable map[string]bool
	// ClassesErr is why Expandable could not be read. It holds up the growth of claims, and nothing else.
	ClassesErr error
	// PullJobs is what is known of image pull jobs, with gate PreDownload.
	PullJobs predownload.Jobs
	// Refusals are what the server has refused before.
	Refusals action.Refusals
	// Now is the moment of the pass.
	Now time.Time
	// Gates are the feature gates that the plan depends on.
	Gates Gates
}

// Gates are the feature gates and options that change what a plan does.
type Gates struct {
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
	// PreparingUpdateAsUpdate counts pods in PreparingUpdate as updated in unordered updates.
	PreparingUpdateAsUpdate bool
	// UnkeyedFirst updates pods with none of the orderPriority keys first instead of last.
	UnkeyedFirst bool
}
