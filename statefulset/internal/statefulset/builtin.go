package statefulset

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/fastclient"
	"github.com/flotilla-project/flotilla/core/podstate"
	"github.com/flotilla-project/flotilla/core/revision"

	"github.com/flotilla-project/flotilla/statefulset/internal/statefulset/plan"
)

// orphanRevisions are revisions without a controller that the set may adopt: those that the built-in
// StatefulSet of the same name left when it was deleted with its pods kept. Looking through the
// namespace is worth it only where a pod is of a revision that the set does not have.
func (r *Reconciler) orphanRevisions(ctx context.Context, s plan.Snapshot) ([]*appsv1.ControllerRevision, error) {
	if !missesRevision(s) {
		return nil, nil
	}
	all, err := fastclient.All[appsv1.ControllerRevision](ctx, r.Reader, s.Set.Namespace)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(o *appsv1.ControllerRevision) bool {
		return metav1.GetControllerOfNoCopy(o) != nil || o.DeletionTimestamp != nil || !selects(s.Set, o.Labels)
	}), nil
}

// missesRevision says whether a pod, adopted or about to be, is of a revision that the set does not own.
func missesRevision(s plan.Snapshot) bool {
	known := map[string]bool{"": true}
	for _, o := range s.Revisions {
		known[revision.Hash(o)] = true
	}
	for _, pod := range slices.Concat(s.Pods, s.Orphans) {
		if !known[podstate.ShortHash(pod.Labels[contract.RevisionLabel])] {
			return true
		}
	}
	return false
}

// sameAsBuiltIn takes an absent imagePullPolicy for the one that the API server wrote into the template
// of a built-in StatefulSet. Everywhere else an absent one reads as Always, and a manifest that moves over
// from there would start a rollout.
func sameAsBuiltIn(stored, present *corev1.PodTemplateSpec) bool {
	read := present.DeepCopy()
	revision.Default(&read.Spec, revision.PullByTag)
	for i := range present.Spec.Containers {
		if present.Spec.Containers[i].ImagePullPolicy == "" && i < len(stored.Spec.Containers) &&
			stored.Spec.Containers[i].ImagePullPolicy != read.Spec.Containers[i].ImagePullPolicy {
			read.Spec.Containers[i].ImagePullPolicy = corev1.PullAlways
		}
	}
	return revision.Equal(stored, read, revision.PullAlways)
}
