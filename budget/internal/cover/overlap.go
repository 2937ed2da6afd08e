package cover

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
)

// Overlap returns the first other budget, by name, that covers one of the pods of a budget, and the first of these pods;
// both are empty if there is none. Each other budget costs as much as it covers pods, so that all of them cost as much as
// there are budgets and pods.
func (r Reader) Overlap(ctx context.Context, b *v1beta1.PodUnavailableBudget, pods []*corev1.Pod) (other, pod string, err error) {
	all, err := fastclient.All[v1beta1.PodUnavailableBudget](ctx, r.Cache, b.Namespace)
	if err != nil {
		return "", "", fmt.Errorf("list the budgets of namespace %s: %w", b.Namespace, err)
	}
	slices.SortFunc(all, func(a, b *v1beta1.PodUnavailableBudget) int { return cmp.Compare(a.Name, b.Name) })
	mine := members{reader: r, namespace: b.Namespace}
	for _, o := range all {
		if o.Name == b.Name || o.DeletionTimestamp != nil {
			continue
		}
		mine.read(pods)
		first, err := mine.under(ctx, o)
		if err != nil || first != "" {
			return o.Name, first, err
		}
	}
	return "", "", nil
}

// members are the pods of a budget.
type members struct {
	reader    Reader
	namespace string
	byUID     map[types.UID]*corev1.Pod // nil until they are read
	groups    []*group
}

// group is pods of one controller.
type group struct {
	first  *corev1.Pod // by name
	owners owners
}

func (m *members) read(pods []*corev1.Pod) {
	if m.byUID != nil {
		return
	}
	m.byUID = make(map[types.UID]*corev1.Pod, len(pods))
	known := map[types.UID]*group{}
	for _, pod := range pods {
		m.byUID[pod.UID] = pod
		ref := metav1.GetControllerOfNoCopy(pod)
		switch {
		case ref == nil:
		case known[ref.UID] == nil:
			known[ref.UID] = &group{first: pod, owners: owners{reader: m.reader, pod: pod}}
			m.groups = append(m.groups, known[ref.UID])
		case pod.Name < known[ref.UID].first.Name:
			known[ref.UID].first = pod
		}
	}
}

// under returns the name of the first of the pods that the budget covers.
func (m *members) under(ctx context.Context, b *v1beta1.PodUnavailableBudget) (first string, err error) {
	ref := b.Spec.TargetReference
	if ref == nil {
		selected, err := m.reader.selected(ctx, m.namespace, b.Spec.Selector)
		return m.first(selected), err
	}
	kind := KindOf(ref)
	for _, g := range m.groups {
		is, err := g.owners.include(ctx, kind, ref.Name)
		if err != nil {
			return "", err
		}
		if is && (first == "" || g.first.Name < first) {
			first = g.first.Name
		}
	}
	if first != "" || !MaySelect(kind) {
		return first, nil
	}
	return m.chosen(ctx, kind, ref.Name)
}

// chosen returns the name of the first of the pods that the target has because its scale selects them.
func (m *members) chosen(ctx context.Context, kind schema.GroupKind, name string) (string, error) {
	target, err := m.reader.Targets.Get(ctx, kind, types.NamespacedName{Namespace: m.namespace, Name: name})
	if apierrors.IsNotFound(err) || isUnknown(err) != "" {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	pods, err := m.reader.below(ctx, target)
	return m.first(pods), err
}

// first returns the name of the first pod that is a member.
func (m *members) first(pods []*corev1.Pod) (first string) {
	for _, pod := range pods {
		if m.byUID[pod.UID] != nil && (first == "" || pod.Name < first) {
			first = pod.Name
		}
	}
	return first
}
