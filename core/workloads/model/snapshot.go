package model

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/workloads/predownload"
	"github.com/flotilla-project/flotilla/core/workloads/revision"
)

// Snapshot is the input of the plan of any workload, read-only. W is a pointer to the kind's struct.
type Snapshot[W metav1.Object] struct {
	// Set is the workload. Fields that its admission fills in may be absent.
	Set W
	// Owner is the reference that makes the set the controller of an object.
	Owner metav1.OwnerReference
	// Pods are the pods that have the set as controller, in any state. Those that lack the label by which the kind caches
	// its pods are found late: see package orphans.
	Pods []*corev1.Pod
	// Orphans are pods without a controller that the selector matches, that may be adopted and that are not terminating.
	Orphans []*corev1.Pod
	// TakenNames are names of pods of others and claims that such pods mount, as far as they were in the set's way
	// lately, with when that is to be tried again.
	TakenNames map[string]time.Time
	// Claim is the claim of the set's namespace with the name, with any owner; nil for none.
	Claim func(name string) *corev1.PersistentVolumeClaim
	// Revisions are the ControllerRevisions that the set owns.
	Revisions []*appsv1.ControllerRevision
	// OrphanRevisions are ControllerRevisions without a controller that the selector matches, such as a workload leaves
	// behind that was deleted without its dependants. Those that were chosen, or that pods are of, are adopted.
	OrphanRevisions []*appsv1.ControllerRevision
	// Chosen holds the current and the wanted revision, and whether the wanted one must be written.
	Chosen revision.Choice
	// NodeLabels are the labels of a node, nil for an unknown one.
	NodeLabels func(node string) map[string]string
	// PullJobs are the known image pull jobs, where images are pulled ahead.
	PullJobs predownload.Jobs
	// Refusals are the writes that the server has refused before.
	Refusals action.Refusals
	// Now is the moment of the pass.
	Now time.Time
	// Seed makes the names of new pods. It differs between passes and between workloads.
	Seed uint64
}

// LiveRevisions are the short hashes of the revisions that must be kept: the chosen revisions and the revisions of
// pods.
func (s *Snapshot[W]) LiveRevisions(ofPods []string) map[string]bool {
	live := map[string]bool{}
	for _, hash := range ofPods {
		live[hash] = true
	}
	for _, r := range []*appsv1.ControllerRevision{s.Chosen.Update, s.Chosen.Current} {
		if r != nil {
			live[revision.Hash(r)] = true
		}
	}
	return live
}
