package workloadspread

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/controllers/pass"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/workloadspread/plan"
)

// release is the pass over a spread that is gone; gone is the error for that. Its pods wake it, also pods of a spread that
// was deleted while no operator ran: their namespace keeps its label.
func (r *reconciler) release(ctx context.Context, key types.NamespacedName, gone error) (pass.Pass, error) {
	pods, err := r.snapshots.Naming(ctx, key)
	if err != nil {
		return pass.Pass{}, err
	}
	// An executor of plans looks whether the object of a plan is gone. This one stands for the spread, and is of no cached kind.
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	object.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("WorkloadSpread"))
	now := r.Clock.Now()
	p := plan.Release(pods, r.KnownRefusals(object, nil, 0, now), now)
	if p.Empty() && len(p.Waits) == 0 {
		return pass.Pass{}, gone
	}
	// The cache of pods may be ahead of the one of spreads.
	switch err := r.Live.Get(ctx, key, object.DeepCopy()); {
	case err == nil:
		waiting := pass.Pass{Object: object}
		waiting.Plan.RequeueWithin(loading)
		return waiting, nil
	case !apierrors.IsNotFound(err):
		return pass.Pass{}, fmt.Errorf("read workload spread %s: %w", key, err)
	}
	return pass.Pass{Object: object, Plan: p}, nil
}

// left returns the pods that name the spread, that one of the owners controls and that the spread has not. The owners are
// its target and the objects between.
func left(has, named []*corev1.Pod, owners []types.UID) []*corev1.Pod {
	mine := make(map[types.UID]bool, len(has))
	for _, pod := range has {
		mine[pod.UID] = true
	}
	return slices.DeleteFunc(named, func(pod *corev1.Pod) bool {
		return mine[pod.UID] || !slices.Contains(owners, metav1.GetControllerOfNoCopy(pod).UID)
	})
}
