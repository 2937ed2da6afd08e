package workloadspread

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/subsets"
	"github.com/flotilla-project/flotilla/spread/internal/workloadspread/plan"
)

// rival is an older spread over a workload, or over a part of it.
type rival struct {
	spread *v1beta1.WorkloadSpread
	within map[types.UID]bool // the controllers of its pods, nil for all of the workload
}

// has reports whether a pod of the workload belongs to the rival.
func (r rival) has(pod *corev1.Pod) bool {
	ref := metav1.GetControllerOfNoCopy(pod)
	return subsets.Selects(r.spread, pod.Labels) && (r.within == nil || ref != nil && r.within[ref.UID])
}

// leaveToRivals drops the pods that belong to older spreads. They target the workload, too, or one of its owners, or an
// object between it and its pods.
func (r *Snapshots) leaveToRivals(
	ctx context.Context, s *plan.Snapshot, workload *metav1.PartialObjectMetadata, children []*metav1.PartialObjectMetadata,
) error {
	rivals, err := r.rivals(ctx, s.Spread, workload, children)
	if err != nil || len(rivals) == 0 {
		return err
	}
	all := len(s.Pods)
	s.Pods = slices.DeleteFunc(s.Pods, func(pod *corev1.Pod) bool {
		i := slices.IndexFunc(rivals, func(other rival) bool { return other.has(pod) })
		if i >= 0 && s.Overlap.Rival == "" {
			s.Overlap.Rival = rivals[i].spread.Name
		}
		return i >= 0
	})
	s.Overlap.Pods = all - len(s.Pods)
	s.Overlap.Of = all
	return nil
}

// rivals are the older spreads, in a fixed order.
func (r *Snapshots) rivals(
	ctx context.Context, spread *v1beta1.WorkloadSpread, workload *metav1.PartialObjectMetadata, children []*metav1.PartialObjectMetadata,
) ([]rival, error) {
	owners, err := r.Workloads.Owners(ctx, spread.Namespace, workload)
	if err != nil {
		return nil, hidden("read the owners of the target", err)
	}
	var found []rival
	look := func(target *metav1.PartialObjectMetadata, within map[types.UID]bool) error {
		key := targetKey(target.GroupVersionKind().GroupKind(), target.Name)
		others, err := fastclient.ByIndex[v1beta1.WorkloadSpread](ctx, r.Cached, spread.Namespace, targetIndex, key)
		if err != nil {
			return fmt.Errorf("read the workload spreads of %s: %w", key, err)
		}
		for _, other := range others {
			if other.UID != spread.UID && other.DeletionTimestamp == nil && subsets.Precedes(other, spread) {
				found = append(found, rival{other, within})
			}
		}
		return nil
	}
	for _, target := range append([]*metav1.PartialObjectMetadata{workload}, owners...) {
		if err := look(target, nil); err != nil {
			return nil, err
		}
	}
	for _, child := range children {
		if err := look(child, below(child, children)); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(found, func(a, b rival) int {
		if subsets.Precedes(a.spread, b.spread) {
			return -1
		}
		return 1
	})
	return found, nil
}

// below returns the UIDs of an object and of the objects that it controls, directly or not. Children come after their
// parents.
func below(top *metav1.PartialObjectMetadata, all []*metav1.PartialObjectMetadata) map[types.UID]bool {
	uids := map[types.UID]bool{top.UID: true}
	for _, o := range all {
		if ref := metav1.GetControllerOfNoCopy(o); ref != nil && uids[ref.UID] {
			uids[o.UID] = true
		}
	}
	return uids
}
