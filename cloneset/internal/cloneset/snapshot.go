package cloneset

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/podtemplate"
	"github.com/flotilla-project/flotilla/core/frame/engine"
	"github.com/flotilla-project/flotilla/core/frame/orphans"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/core/workloads/model"
	"github.com/flotilla-project/flotilla/core/workloads/revision"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/cloneset/internal/cloneset/plan"
)

// snapshot reads the world of one CloneSet from the cache. Its error satisfies IsNotFound only when
// the CloneSet itself is gone; an absent relative is an empty list.
func (r *Reconciler) snapshot(ctx context.Context, key types.NamespacedName) (plan.Snapshot, error) {
	set, err := fastclient.Get[v1beta1.CloneSet](ctx, r.Reader, key)
	if err != nil {
		return plan.Snapshot{}, err
	}
	now := r.Clock.Now()
	s := plan.Snapshot{Gates: r.Gates, Snapshot: model.Snapshot[*v1beta1.CloneSet]{
		Set: set, Owner: *metav1.NewControllerRef(set, v1beta1.GroupVersion.WithKind(v1beta1.Kind)),
		Now: now, Seed: engine.Seed(set.UID, now), NodeLabels: r.NodeLabels(ctx),
		Claim: func(name string) *corev1.PersistentVolumeClaim { return r.Claim(ctx, set.Namespace, name) },
	}}
	if s.Pods, err = fastclient.Controlled[corev1.Pod](ctx, r.Reader, set); err != nil {
		return s, fmt.Errorf("list pods: %w", err)
	}
	s.Refusals = r.Known(set, s.Pods, set.Spec.MinReadySeconds, now)
	if s.Claims, err = fastclient.Controlled[corev1.PersistentVolumeClaim](ctx, r.Reader, set); err != nil {
		return s, fmt.Errorf("list claims: %w", err)
	}
	if s.Revisions, err = fastclient.Controlled[appsv1.ControllerRevision](ctx, r.Reader, set); err != nil {
		return s, fmt.Errorf("list revisions: %w", err)
	}
	if s.OrphanRevisions, err = r.History.Orphans(ctx, set, set.Spec.Selector); err != nil {
		return s, err
	}
	lost, err := r.Orphans.Find(ctx, search(s), now)
	if err != nil {
		return s, fmt.Errorf("find lost pods: %w", err)
	}
	s.Pods, s.Orphans, s.Taken = append(s.Pods, lost.Own...), lost.Orphans, lost.Taken
	if s.Chosen, err = r.choose(ctx, s); err != nil {
		return s, err
	}
	if c := s.Chosen; r.Gates.PreDownload && c.Update != nil && c.Current != nil {
		s.PullJobs = r.PullJobs.Of(ctx, set, c.Update.Name, c.Update.Name != c.Current.Name)
	}
	return s, nil
}

// search says which pods besides the cached ones could be the set's.
func search(s plan.Snapshot) orphans.Search {
	return orphans.Search{
		Owner: s.Set, Selector: s.Set.Spec.Selector, Pods: s.Pods, Replicas: s.Set.Spec.Replicas,
		Counted: s.Set.Status.Replicas, Observed: s.Set.Status.ObservedGeneration,
	}
}

// choose finds the revision of the set's template.
func (r *Reconciler) choose(ctx context.Context, s plan.Snapshot) (revision.Choice, error) {
	claimsHash, err := revision.ClaimsHash(s.Set.Spec.VolumeClaimTemplates)
	if err != nil {
		return revision.Choice{}, fmt.Errorf("hash claim templates: %w", err)
	}
	in := revision.Input{
		Owner: s.Set, Kind: v1beta1.GroupVersion.WithKind(v1beta1.Kind), Template: &s.Set.Spec.Template,
		DefaultPullPolicy: podspec.PullAlways, ClaimsHash: &claimsHash, Owned: s.Revisions, Orphans: s.OrphanRevisions,
		Current: s.Set.Status.CurrentRevision,
	}
	if c := s.Set.Status.CollisionCount; c != nil {
		in.CollisionCount = *c
	}
	return r.History.Choose(ctx, in, podtemplate.ClaimVolumes(s.Set.Spec.VolumeClaimTemplates)...)
}
