package plan

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/workloads/predownload"
	"github.com/flotilla-project/flotilla/core/workloads/revision"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// Snapshot is the read-only view of the world for one CloneSet.
type Snapshot struct {
	// Set is the CloneSet, defaulted.
	Set *v1beta1.CloneSet
	// Pods are the pods whose controller is the set, in any state. Those without an instance id are not in the
	// cache.
	Pods []*corev1.Pod
	// Orphans are pods without a controller that the selector matches and that may be adopted.
	Orphans []*corev1.Pod
	// Taken are names of pods of others and claims that such pods mount, as far as they were in the set's way
	// lately, with when that is to be tried again.
	Taken map[string]time.Time
	// Claims are the claims that the set owns.
	Claims []*corev1.PersistentVolumeClaim
	// Claim is the claim of the set's namespace with the name, whoever owns it; nil for none.
	Claim func(name string) *corev1.PersistentVolumeClaim
	// Revisions are the ControllerRevisions that the set owns.
	Revisions []*appsv1.ControllerRevision
	// OrphanRevisions are ControllerRevisions without a controller that the selector matches. Those that
	// were chosen, or that active pods are of, are adopted.
	OrphanRevisions []*appsv1.ControllerRevision
	// Chosen says which revisions are current and wanted, and whether the wanted one must be written.
	Chosen revision.Choice
	// ClaimsHash is the hash of the present claim templates.
	ClaimsHash string
	// NodeLabels are the labels of a node, nil for an unknown one.
	NodeLabels func(node string) map[string]string
	// PullJobs is what is known of image pull jobs, with gate PreDownload.
	PullJobs predownload.Jobs
	// Refusals are what the server has refused before.
	Refusals action.Refusals
	// Now is the moment of the pass.
	Now time.Time
	// Seed makes the ids of new pods.
	Seed uint64
	// Gates are the feature gates that the plan depends on.
	Gates Gates
}

// Gates are the feature gates and options that change what a plan does.
type Gates struct {
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
	// PreDownload is PreDownloadImageForInPlaceUpdate: images are pulled on the nodes ahead of an update.
	PreDownload bool
	// UnkeyedFirst updates pods with none of the orderPriority keys first instead of last.
	UnkeyedFirst bool
	// ExcludePreparingDelete is the flag of that name: it acts as if every set had the field set.
	ExcludePreparingDelete bool
}
