package statefulset

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"

	"github.com/flotilla-project/flotilla/core/frame/orphans"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/core/workloads/model"
	"github.com/flotilla-project/flotilla/core/workloads/revision"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
	"github.com/flotilla-project/flotilla/statefulset/internal/statefulset/plan"
)

// snapshot reads the world of one StatefulSet from the cache. Its error satisfies IsNotFound only when
// the StatefulSet itself is gone; an absent relative is an empty list.
func (r *Reconciler) snapshot(ctx context.Context, key types.NamespacedName) (plan.Snapshot, error) {
	set, err := fastclient.Get[v1beta1.StatefulSet](ctx, r.Reader, key)
	if err != nil {
		return plan.Snapshot{}, err
	}
	s := plan.Snapshot{Gates: r.Gates, Snapshot: model.Snapshot[*v1beta1.StatefulSet]{
		Set: set, Owner: *metav1.NewControllerRef(set, v1beta1.GroupVersion.WithKind(v1beta1.Kind)), Now: r.Clock.Now(),
		Claim: func(name string) *corev1.PersistentVolumeClaim { return r.Claim(ctx, set.Namespace, name) },
	}}
	if s.Pods, err = fastclient.Controlled[corev1.Pod](ctx, r.Reader, set); err != nil {
		return s, fmt.Errorf("list pods: %w", err)
	}
	s.Refusals = r.Known(set, s.Pods, set.Spec.MinReadySeconds, s.Now)
	if s.Revisions, err = fastclient.Controlled[appsv1.ControllerRevision](ctx, r.Reader, set); err != nil {
		return s, fmt.Errorf("list revisions: %w", err)
	}
	lost, err := r.Orphans.Find(ctx, search(s), s.Now)
	if err != nil {
		return s, fmt.Errorf("find lost pods: %w", err)
	}
	s.Pods, s.Orphans = append(s.Pods, lost.Own...), lost.Orphans
	if s.OrphanRevisions, err = r.History.Orphans(ctx, set, set.Spec.Selector); err != nil {
		return s, err
	}
	if s.Chosen, err = r.choose(ctx, s); err != nil {
		return s, fmt.Errorf("find the template's revision: %w", err)
	}
	s.Expandable, s.ClassesErr = r.expandable(ctx, s)
	if c := s.Chosen; r.Gates.PreDownload && c.Update != nil && c.Current != nil {
		s.PullJobs = r.PullJobs.Of(ctx, set, c.Update.Name, c.Update.Name != c.Current.Name)
	}
	return s, nil
}

// search says which pods besides the cached ones could be the set's: orphans that are members by name.
func search(s plan.Snapshot) orphans.Search {
	return orphans.Search{
		Owner: s.Set, Selector: s.Set.Spec.Selector, Pods: s.Pods, Replicas: s.Set.Spec.Replicas,
		Wanted:  func(pod *corev1.Pod) bool { return plan.IsMember(s.Set, pod.Name) },
		Counted: s.Set.Status.Replicas, Observed: s.Set.Status.ObservedGeneration,
	}
}

func (r *Reconciler) choose(ctx context.Context, s plan.Snapshot) (revision.Choice, error) {
	in := revision.Input{
		Owner: s.Set, Kind: v1beta1.GroupVersion.WithKind(v1beta1.Kind), Template: &s.Set.Spec.Template,
		DefaultPullPolicy: podspec.PullAlways, Owned: s.Revisions, Orphans: s.OrphanRevisions,
		Current: s.Set.Status.CurrentRevision, Same: sameAsBuiltIn,
	}
	if c := s.Set.Status.CollisionCount; c != nil {
		in.CollisionCount = *c
	}
	var volumes []string
	for i := range s.Set.Spec.VolumeClaimTemplates {
		volumes = append(volumes, s.Set.Spec.VolumeClaimTemplates[i].Name)
	}
	return r.History.Choose(ctx, in, volumes...)
}
