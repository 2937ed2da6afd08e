package cover

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
)

var replicaSet = schema.GroupKind{Group: appsv1.GroupName, Kind: "ReplicaSet"} //nolint:gochecknoglobals // a constant

// owners are the owners of a pod, identified by their UIDs. They are looked up with the first question.
type owners struct {
	reader Reader
	pod    *corev1.Pod
	known  bool
	chain  []*metav1.PartialObjectMetadata
	err    error // about the owner of the last one
}

func (o *owners) read(ctx context.Context) {
	if !o.known {
		o.known = true
		o.chain, o.err = o.reader.Targets.Owners(ctx, o.pod.Namespace, o.pod)
	}
}

// under reports whether the budget covers the pod.
func (o *owners) under(ctx context.Context, b *v1beta1.PodUnavailableBudget) (bool, error) {
	target := b.Spec.TargetReference
	switch {
	case b.DeletionTimestamp != nil:
		return false, nil
	case target == nil:
		return Selects(b, o.pod.Labels) && !o.haveLeft(ctx), nil
	}
	is, err := o.include(ctx, KindOf(target), target.Name)
	if is || err != nil {
		return is && !o.haveLeft(ctx), err
	}
	chosen, err := o.reader.chooses(ctx, target, o.pod)
	if err != nil {
		return false, fmt.Errorf("check whether %s %s selects pod %s: %w", target.Kind, target.Name, o.pod.Name, err)
	}
	return chosen && !o.haveLeft(ctx), nil
}

// include reports whether a workload of the kind and name is among the owners.
func (o *owners) include(ctx context.Context, kind schema.GroupKind, name string) (bool, error) {
	o.read(ctx)
	for i, owner := range o.chain {
		if owner.Name == name && owner.GroupVersionKind().GroupKind() == kind {
			return o.reader.controls(ctx, owner, o.pod, i == 0)
		}
	}
	switch {
	case o.err == nil, apierrors.IsNotFound(o.err):
		return false, nil
	case len(o.chain) == 0 && isUnknown(o.err) != "" && isController(kind, name, o.pod):
		return true, nil // of a target that cannot be read, Pods finds those that it controls by its name, too
	case isUnreadable(o.err) || !o.mayBeUnder(kind, name):
		return false, nil
	}
	return false, fmt.Errorf("find the owners of pod %s: %w", o.pod.Name, o.err)
}

// controls reports whether a pod below the target is one of its pods: each that it controls itself, and of those that it
// controls through others, as Pods finds them, each that the selector of its scale matches.
func (r Reader) controls(ctx context.Context, target *metav1.PartialObjectMetadata, pod *corev1.Pod, itself bool) (bool, error) {
	if itself {
		return true, nil
	}
	selector, err := r.scaleSelector(ctx, target)
	return err == nil && selector != nil && matches(selector, pod.Labels), err
}

// mayBeUnder reports whether the owner that could not be read may be the workload, or lead to it. Some kinds of workloads
// always have owner references on their pods. Among the owners of these pods only ReplicaSets have owners themselves.
func (o *owners) mayBeUnder(kind schema.GroupKind, name string) bool {
	var last metav1.Object = o.pod
	if n := len(o.chain); n > 0 {
		last = o.chain[n-1]
	}
	return MaySelect(kind) || isController(kind, name, last) || isControlledBy(replicaSet, last)
}

// haveLeft reports whether the pod's workload is gone or being deleted, except a workload that leaves its pods behind: no
// controller replaces the pod, and the garbage collector is about to delete it.
func (o *owners) haveLeft(ctx context.Context) bool {
	if metav1.GetControllerOfNoCopy(o.pod) == nil {
		return false
	}
	o.read(ctx)
	return len(o.chain) == 0 && apierrors.IsNotFound(o.err) || slices.ContainsFunc(o.chain, func(owner *metav1.PartialObjectMetadata) bool {
		return owner.DeletionTimestamp != nil && !slices.Contains(owner.Finalizers, metav1.FinalizerOrphanDependents)
	})
}

// staying returns the pods, except pods of a workload that is gone or being deleted.
func (r Reader) staying(ctx context.Context, pods []*corev1.Pod) []*corev1.Pod {
	left := map[types.UID]bool{} // by controller
	return slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool {
		ref := metav1.GetControllerOfNoCopy(pod)
		if ref == nil {
			return false
		}
		if _, known := left[ref.UID]; !known {
			o := owners{reader: r, pod: pod}
			left[ref.UID] = o.haveLeft(ctx)
		}
		return left[ref.UID]
	})
}

// isController reports whether the object's controller has the kind and the name.
func isController(kind schema.GroupKind, name string, object metav1.Object) bool {
	ref := metav1.GetControllerOfNoCopy(object)
	return ref != nil && ref.Name == name && isControlledBy(kind, object)
}

// isControlledBy reports whether the object's controller has the kind.
func isControlledBy(kind schema.GroupKind, object metav1.Object) bool {
	ref := metav1.GetControllerOfNoCopy(object)
	return ref != nil && schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind() == kind
}

// isUnreadable reports whether an owner is gone or cannot be read for reasons that do not pass: no owner above it can be a
// target.
func isUnreadable(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || meta.IsNoMatchError(err)
}
