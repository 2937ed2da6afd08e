package cover

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/pods/podstate"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
)

// labelIndex finds pods by each of their labels, as key=value.
const labelIndex = "metadata.labels"

// AddIndexes adds the indexes of pods.
func AddIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &corev1.Pod{}, labelIndex, func(o client.Object) []string {
		keys := make([]string, 0, len(o.GetLabels()))
		for key, value := range o.GetLabels() {
			keys = append(keys, key+"="+value)
		}
		return keys
	}); err != nil {
		return fmt.Errorf("index pods by their labels: %w", err)
	}
	return fastclient.IndexOwners(ctx, indexer, &corev1.Pod{})
}

// Pods returns the pods that the budget covers, and its target if it names one. An error that satisfies IsNotFound means
// that the target is not there. With an error that Unreadable knows, Pods returns the pods that the target controls itself.
// Pods of a workload that is gone or being deleted are left out.
func (r Reader) Pods(ctx context.Context, b *v1beta1.PodUnavailableBudget) ([]*corev1.Pod, *metav1.PartialObjectMetadata, error) {
	pods, target, err := r.within(ctx, b)
	return r.staying(ctx, pods), target, err
}

// within returns the pods of the budget, whether or not their workload stays.
func (r Reader) within(ctx context.Context, b *v1beta1.PodUnavailableBudget) ([]*corev1.Pod, *metav1.PartialObjectMetadata, error) {
	if b.Spec.TargetReference == nil {
		pods, err := r.selected(ctx, b.Namespace, b.Spec.Selector)
		return pods, nil, err
	}
	name := types.NamespacedName{Namespace: b.Namespace, Name: b.Spec.TargetReference.Name}
	kind := KindOf(b.Spec.TargetReference)
	target, err := r.Targets.Get(ctx, kind, name)
	if isUnknown(err) != "" {
		pods, listErr := r.controlledBy(ctx, kind, name)
		return pods, nil, errors.Join(err, listErr)
	}
	if err != nil {
		return nil, nil, err
	}
	pods, err := r.below(ctx, target)
	return pods, target, err
}

// controlledBy returns the pods with a controller of that kind and name.
func (r Reader) controlledBy(ctx context.Context, kind schema.GroupKind, name types.NamespacedName) ([]*corev1.Pod, error) {
	all, err := fastclient.All[corev1.Pod](ctx, r.Cache, name.Namespace)
	if err != nil {
		return nil, fmt.Errorf("list the pods of namespace %s: %w", name.Namespace, err)
	}
	return slices.DeleteFunc(all, func(pod *corev1.Pod) bool {
		return !isController(kind, name.Name, pod)
	}), nil
}

// below returns the pods that the target controls, also through others, if its scale has their selector. Where it
// controls none, it may be those that its scale selects.
func (r Reader) below(ctx context.Context, target *metav1.PartialObjectMetadata) ([]*corev1.Pod, error) {
	selector, err := r.scaleSelector(ctx, target)
	if err != nil {
		return nil, err
	}
	owned, selected, err := r.owned(ctx, target, selector)
	if err != nil {
		return nil, err
	}
	return covered(target.GroupVersionKind().GroupKind(), owned, selected), nil
}

// owned returns the pods that the target controls, also through others, and those that the selector of its scale, which
// may be nil, matches.
func (r Reader) owned(ctx context.Context, target *metav1.PartialObjectMetadata, by *metav1.LabelSelector) (owned, selected []*corev1.Pod, err error) {
	begun := r.Owning.begin()
	defer func() {
		if err == nil {
			r.Owning.set(target.UID, begun, slices.ContainsFunc(owned, podstate.IsActive))
		}
	}()
	owned, err = fastclient.Controlled[corev1.Pod](ctx, r.Cache, target)
	if err != nil {
		return nil, nil, fmt.Errorf("list the pods of %s: %w", target.Name, err)
	}
	if by == nil {
		return owned, nil, nil
	}
	if selected, err = r.selected(ctx, target.Namespace, by); err != nil {
		return nil, nil, err
	}
	through, err := r.through(ctx, target, selected)
	return append(owned, through...), selected, err
}

// selected returns the pods that the selector matches; none for an empty one.
func (r Reader) selected(ctx context.Context, namespace string, by *metav1.LabelSelector) ([]*corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(by)
	if err != nil || selector.Empty() {
		return nil, nil //nolint:nilerr // admission refuses it, and it matches nothing
	}
	candidates, err := r.candidates(ctx, namespace, selector)
	if err != nil {
		return nil, fmt.Errorf("list the pods of namespace %s: %w", namespace, err)
	}
	pods := make([]*corev1.Pod, 0, len(candidates))
	for _, pod := range candidates {
		if selector.Matches(labels.Set(pod.Labels)) {
			pods = append(pods, pod)
		}
	}
	return pods, nil
}

// candidates returns the pods that have the label with one value that fewest pods have; all of the namespace if the
// selector asks for none.
func (r Reader) candidates(ctx context.Context, namespace string, selector labels.Selector) ([]*corev1.Pod, error) {
	requirements, _ := selector.Requirements()
	var fewest []*corev1.Pod
	found := false
	for _, requirement := range requirements {
		values := requirement.Values()
		if op := requirement.Operator(); op != selection.Equals && op != selection.DoubleEquals && op != selection.In || len(values) != 1 {
			continue
		}
		pods, err := fastclient.ByIndex[corev1.Pod](ctx, r.Cache, namespace, labelIndex, requirement.Key()+"="+values.UnsortedList()[0])
		if err != nil {
			return nil, err
		}
		if !found || len(pods) < len(fewest) {
			fewest, found = pods, true
		}
	}
	if found {
		return fewest, nil
	}
	return fastclient.All[corev1.Pod](ctx, r.Cache, namespace)
}
