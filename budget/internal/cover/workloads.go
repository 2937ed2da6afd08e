package cover

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/controllers/targets"
	"github.com/flotilla-project/flotilla/core/pods/podstate"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/disruption"
)

// Object names a workload.
type Object struct {
	Kind schema.GroupKind
	Name types.NamespacedName
}

// tally collects the workloads of a budget.
type tally struct {
	reader Reader
	tops   map[types.UID]*metav1.PartialObjectMetadata // by direct owner: the workload that it belongs to; nil if it is gone
	found  map[types.UID]*disruption.Workload
	order  []types.UID
	on     map[Object]bool
}

// Workloads returns the workloads that the pods belong to, each once, or the target if there is one, and the objects that
// this follows from. Workloads that are gone or being deleted want no pods. An error may pass.
func (r Reader) Workloads(ctx context.Context, pods []*corev1.Pod, target *metav1.PartialObjectMetadata) ([]disruption.Workload, map[Object]bool, error) {
	t := tally{
		reader: r,
		tops:   map[types.UID]*metav1.PartialObjectMetadata{},
		found:  map[types.UID]*disruption.Workload{},
		on:     map[Object]bool{},
	}
	var err error
	if target != nil {
		err = t.target(ctx, target, pods)
	} else {
		err = t.all(ctx, pods)
	}
	workloads := make([]disruption.Workload, 0, len(t.order))
	for _, uid := range t.order {
		workloads = append(workloads, *t.found[uid])
	}
	return workloads, t.on, err
}

func (t *tally) target(ctx context.Context, target *metav1.PartialObjectMetadata, pods []*corev1.Pod) error {
	for _, pod := range pods {
		if err := t.count(ctx, target, pod); err != nil {
			return err
		}
	}
	return t.count(ctx, target, nil)
}

func (t *tally) all(ctx context.Context, pods []*corev1.Pod) error {
	for _, pod := range pods {
		ref := metav1.GetControllerOfNoCopy(pod)
		if ref == nil || podstate.IsFinished(pod) {
			continue
		}
		top, known := t.tops[ref.UID]
		if !known {
			var err error
			if top, err = t.top(ctx, pod, ref); err != nil {
				return err
			}
			t.tops[ref.UID] = top
		}
		if top == nil {
			if w := t.found[ref.UID]; w != nil { // an owner that cannot be read
				w.Replicas++
			}
			continue
		}
		if err := t.count(ctx, top, pod); err != nil {
			return err
		}
	}
	return nil
}

// top returns the workload that a pod belongs to: its controller or, if that is a ReplicaSet, the controller of the
// ReplicaSet, if it has replicas. It is nil for a workload that is gone and for one that cannot be read.
func (t *tally) top(ctx context.Context, pod *corev1.Pod, ref *metav1.OwnerReference) (*metav1.PartialObjectMetadata, error) {
	chain, err := t.reader.Targets.Owners(ctx, pod.Namespace, pod)
	if len(chain) == 0 {
		if err == nil || apierrors.IsNotFound(err) {
			return nil, nil
		}
		kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
		return nil, t.unknown(ref.UID, kind.Kind+" "+ref.Name, err)
	}
	owner := chain[0]
	t.depend(owner)
	if !isReplicaSet(owner) {
		return owner, nil
	}
	if len(chain) == 1 {
		if err != nil && !isUnreadable(err) && isUnknown(err) == "" {
			return nil, fmt.Errorf("find the owners of pod %s: %w", pod.Name, err)
		}
		return owner, nil
	}
	if _, err := t.reader.Targets.Replicas(ctx, chain[1]); isUnknown(err) != "" {
		return owner, nil
	}
	return chain[1], nil
}

func isReplicaSet(o *metav1.PartialObjectMetadata) bool {
	return o.GroupVersionKind().GroupKind() == replicaSet
}

// count adds a workload, once, and the pod to a workload with unknown replicas.
func (t *tally) count(ctx context.Context, o *metav1.PartialObjectMetadata, pod *corev1.Pod) error {
	t.depend(o)
	w := t.found[o.UID]
	if w == nil {
		name := o.Kind + " " + o.Name
		replicas, err := t.reader.Targets.Replicas(ctx, o)
		switch {
		case o.DeletionTimestamp != nil || apierrors.IsNotFound(err):
			t.add(o.UID, disruption.Workload{Name: name})
		case err == nil:
			t.add(o.UID, disruption.Workload{Name: name, Replicas: replicas.Spec})
		case errors.Is(err, targets.ErrNoScale):
			if err := t.unscaled(ctx, o, name); err != nil {
				return err
			}
		default:
			if err := t.unknown(o.UID, name, err); err != nil {
				return err
			}
		}
		w = t.found[o.UID]
	}
	if w.Unknown != "" && pod != nil && !podstate.IsFinished(pod) {
		w.Replicas++
	}
	return nil
}

// unscaled adds a workload without a scale subresource.
func (t *tally) unscaled(ctx context.Context, o *metav1.PartialObjectMetadata, name string) error {
	n, err := t.reader.Targets.Unscaled(ctx, o)
	switch {
	case apierrors.IsNotFound(err):
		t.add(o.UID, disruption.Workload{Name: name})
	case err == nil:
		t.add(o.UID, disruption.Workload{Name: name, Replicas: n, Drifts: true})
	default:
		return t.unknown(o.UID, name, err)
	}
	return nil
}

// unknown adds a workload with unknown replicas, unless the error may pass.
func (t *tally) unknown(uid types.UID, name string, err error) error {
	reason := isUnknown(err)
	if reason == "" {
		return fmt.Errorf("read the replicas of %s: %w", name, err)
	}
	t.add(uid, disruption.Workload{
		Name:    name,
		Unknown: reason,
		Message: err.Error(),
	})
	return nil
}

// isUnknown returns the reason for users why replicas stay unknown; empty if they are known or may be soon.
func isUnknown(err error) string {
	switch {
	case errors.Is(err, targets.ErrNoScale):
		return disruption.ReasonNoScale
	case apierrors.IsForbidden(err):
		return disruption.ReasonForbidden
	case meta.IsNoMatchError(err):
		return disruption.ReasonNotServed
	case apierrors.IsInternalError(err):
		return disruption.ReasonUnreadable
	}
	return ""
}

// Unreadable returns the workload for a target that cannot be read, given its pods, and false if the error is another
// one.
func Unreadable(target *v1beta1.TargetReference, pods []*corev1.Pod, err error) (disruption.Workload, bool) {
	w := disruption.Workload{Name: target.Kind + " " + target.Name, Unknown: isUnknown(err)}
	if w.Unknown == "" {
		return w, false
	}
	w.Message = err.Error()
	for _, pod := range pods {
		if !podstate.IsFinished(pod) {
			w.Replicas++
		}
	}
	return w, true
}

func (t *tally) add(uid types.UID, w disruption.Workload) {
	t.found[uid] = &w
	t.order = append(t.order, uid)
}

func (t *tally) depend(o *metav1.PartialObjectMetadata) {
	t.on[Object{o.GroupVersionKind().GroupKind(), types.NamespacedName{Namespace: o.Namespace, Name: o.Name}}] = true
}
