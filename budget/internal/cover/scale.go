package cover

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podstate"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
)

// MaySelect reports whether workloads of the kind may have pods that they do not own, but that their scale selects. The
// pods of the kinds that are known here always have owner references.
func MaySelect(kind schema.GroupKind) bool {
	return !slices.Contains([]schema.GroupKind{
		{Group: appsv1.GroupName, Kind: "Deployment"}, {Group: appsv1.GroupName, Kind: "ReplicaSet"},
		{Group: appsv1.GroupName, Kind: "StatefulSet"}, {Group: appsv1.GroupName, Kind: "DaemonSet"},
		{Group: corev1.GroupName, Kind: "ReplicationController"}, {Group: batchv1.GroupName, Kind: "Job"},
		{Group: contract.AppsGroup, Kind: "CloneSet"}, {Group: contract.AppsGroup, Kind: "StatefulSet"},
		{Group: contract.AppsGroup, Kind: "DaemonSet"},
	}, kind)
}

// covered returns the pods of a target of the kind: those it owns or, if it may select others and none of its own is
// left, those that its scale selects.
func covered(kind schema.GroupKind, owned, selected []*corev1.Pod) []*corev1.Pod {
	if !MaySelect(kind) || slices.ContainsFunc(owned, podstate.IsActive) {
		return owned
	}
	known := make(map[types.UID]bool, len(selected))
	for _, pod := range selected {
		known[pod.UID] = true
	}
	return append(selected, slices.DeleteFunc(slices.Clone(owned), func(pod *corev1.Pod) bool { return known[pod.UID] })...)
}

// scaleSelector returns the selector of the target's pods; nil if its scale cannot be read or has no valid selector.
func (r Reader) scaleSelector(ctx context.Context, target *metav1.PartialObjectMetadata) (*metav1.LabelSelector, error) {
	scale, err := r.Targets.Replicas(ctx, target)
	if err != nil && !apierrors.IsNotFound(err) && isUnknown(err) == "" {
		return nil, fmt.Errorf("find the pods of %s: %w", target.Name, err)
	}
	if err != nil || scale.Selector == "" {
		return nil, nil //nolint:nilerr // Workloads tells of it
	}
	selector, err := metav1.ParseToLabelSelector(scale.Selector)
	if err != nil {
		return nil, nil //nolint:nilerr // no selector that Kubernetes knows
	}
	return selector, nil
}

// through returns the pods that the target controls through others.
func (r Reader) through(ctx context.Context, target *metav1.PartialObjectMetadata, pods []*corev1.Pod) ([]*corev1.Pod, error) {
	var found []*corev1.Pod
	below := map[types.UID]bool{target.UID: false} // of a pod's controller; Controlled returns the pods of the target itself
	for _, pod := range pods {
		ref := metav1.GetControllerOfNoCopy(pod)
		if ref == nil {
			continue
		}
		is, known := below[ref.UID]
		if !known {
			chain, err := r.Targets.Owners(ctx, pod.Namespace, pod)
			if err != nil && !isUnreadable(err) && isUnknown(err) == "" {
				return nil, fmt.Errorf("find the owners of pod %s: %w", pod.Name, err)
			}
			is = slices.ContainsFunc(chain, func(o *metav1.PartialObjectMetadata) bool { return o.UID == target.UID })
			below[ref.UID] = is
		}
		if is {
			found = append(found, pod)
		}
	}
	return found, nil
}

// chooses reports whether the target, which does not own the pod, has it because its scale selects it.
func (r Reader) chooses(ctx context.Context, ref *v1beta1.TargetReference, pod *corev1.Pod) (bool, error) {
	kind := KindOf(ref)
	if !MaySelect(kind) {
		return false, nil
	}
	target, err := r.Targets.Get(ctx, kind, types.NamespacedName{Namespace: pod.Namespace, Name: ref.Name})
	if apierrors.IsNotFound(err) || isUnknown(err) != "" {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	selector, err := r.scaleSelector(ctx, target)
	if err != nil || selector == nil || !matches(selector, pod.Labels) {
		return false, err
	}
	if owns, known := r.Owning.get(target.UID); known {
		return !owns, nil
	}
	owned, _, err := r.owned(ctx, target, selector)
	return err == nil && !slices.ContainsFunc(owned, podstate.IsActive), err
}
