package cloneset

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/fastclient"
	"github.com/flotilla-project/flotilla/core/revision"

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
	s := plan.Snapshot{
		Set:   set,
		Now:   now,
		Seed:  seed(set.UID, now.UnixNano()),
		Gates: r.Gates,
		NodeLabels: func(name string) map[string]string {
			node, err := fastclient.Get[corev1.Node](ctx, r.Reader, types.NamespacedName{Name: name})
			if err != nil {
				return nil
			}
			return node.Labels
		},
	}
	if s.Pods, err = owned[corev1.Pod](ctx, r, set); err != nil {
		return s, fmt.Errorf("list pods: %w", err)
	}
	if s.Claims, err = owned[corev1.PersistentVolumeClaim](ctx, r, set); err != nil {
		return s, fmt.Errorf("list claims: %w", err)
	}
	if s.Revisions, err = owned[appsv1.ControllerRevision](ctx, r, set); err != nil {
		return s, fmt.Errorf("list revisions: %w", err)
	}
	if s.Orphans, err = r.orphans.of(ctx, set, now); err != nil {
		return s, fmt.Errorf("list orphans: %w", err)
	}
	if s.ClaimsHash, err = revision.ClaimsHash(set.Spec.VolumeClaimTemplates); err != nil {
		return s, fmt.Errorf("hash claim templates: %w", err)
	}
	if s.Chosen, err = r.history.choose(ctx, s); err != nil {
		return s, err
	}
	if r.Gates.PreDownload {
		s.PullJobs = r.pulls.of(ctx, &s)
	}
	return s, nil
}

// owned lists what the set controls.
func owned[T any, P fastclient.Object[T]](ctx context.Context, r *Reconciler, set *v1beta1.CloneSet) ([]*T, error) {
	all, err := fastclient.Owned[T, P](ctx, r.Reader, set.Namespace, set.UID)
	return slices.DeleteFunc(all, func(o *T) bool { return !metav1.IsControlledBy(P(o), set) }), err
}

// seed differs between passes and between sets.
func seed(uid types.UID, nanoseconds int64) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(uid))
	return h.Sum64() ^ uint64(nanoseconds)
}
