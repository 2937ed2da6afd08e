package cover

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/targets"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
)

// Targets reads workloads of any kind, as targets.Reader does.
type Targets interface {
	Get(ctx context.Context, kind schema.GroupKind, name types.NamespacedName) (*metav1.PartialObjectMetadata, error)
	Owners(ctx context.Context, namespace string, object metav1.Object, wanted ...schema.GroupKind) ([]*metav1.PartialObjectMetadata, error)
	Replicas(ctx context.Context, workload *metav1.PartialObjectMetadata) (targets.Replicas, error)
	Unscaled(ctx context.Context, workload *metav1.PartialObjectMetadata) (int32, error)
	Caches(kind schema.GroupKind) bool
	IsClusterScoped(kind schema.GroupKind) bool
}

// Reader reads budgets, pods and workloads.
type Reader struct {
	Cache   *fastclient.Reader
	Targets Targets
	// Owning, unless nil, is remembered between questions about pods.
	Owning *Owning
}

// Budgets returns the budgets that cover the pod: first those with a target, then by name. An error means that it is not
// known whether there are more.
func (r Reader) Budgets(ctx context.Context, pod *corev1.Pod) ([]*v1beta1.PodUnavailableBudget, error) {
	all, err := fastclient.All[v1beta1.PodUnavailableBudget](ctx, r.Cache, pod.Namespace)
	if err != nil {
		return nil, fmt.Errorf("list the budgets of namespace %s: %w", pod.Namespace, err)
	}
	var found []*v1beta1.PodUnavailableBudget
	chain := owners{reader: r, pod: pod}
	for _, b := range all {
		covers, err := chain.under(ctx, b)
		if err != nil {
			return nil, err
		}
		if covers {
			found = append(found, b)
		}
	}
	slices.SortFunc(found, func(a, b *v1beta1.PodUnavailableBudget) int {
		if (a.Spec.TargetReference == nil) != (b.Spec.TargetReference == nil) {
			return cmp.Compare(rank(a), rank(b))
		}
		return cmp.Compare(a.Name, b.Name)
	})
	return found, nil
}

// Known returns an error unless caches show which pods of the namespace the budget covers.
func (r Reader) Known(ctx context.Context, b *v1beta1.PodUnavailableBudget) error {
	if t := b.Spec.TargetReference; t != nil {
		_, err := r.Targets.Get(ctx, KindOf(t), types.NamespacedName{Namespace: b.Namespace, Name: t.Name})
		if err != nil && !isUnreadable(err) {
			return fmt.Errorf("read the target of budget %s: %w", b.Name, err)
		}
	}
	pods, err := fastclient.All[corev1.Pod](ctx, r.Cache, b.Namespace)
	if err != nil {
		return fmt.Errorf("list the pods of namespace %s: %w", b.Namespace, err)
	}
	known := map[types.UID]bool{}
	for _, pod := range pods {
		ref := metav1.GetControllerOfNoCopy(pod)
		if ref == nil || known[ref.UID] {
			continue
		}
		known[ref.UID] = true
		if _, err := r.Targets.Owners(ctx, pod.Namespace, pod); err != nil && !isUnreadable(err) {
			return fmt.Errorf("find the owners of pod %s: %w", pod.Name, err)
		}
	}
	return nil
}

func rank(b *v1beta1.PodUnavailableBudget) int {
	if b.Spec.TargetReference != nil {
		return 0
	}
	return 1
}

// Selects reports whether the budget's selector matches the labels. An empty one, or one that cannot be read, matches
// none.
func Selects(b *v1beta1.PodUnavailableBudget, of map[string]string) bool {
	return matches(b.Spec.Selector, of)
}

func matches(by *metav1.LabelSelector, of map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(by)
	return err == nil && !selector.Empty() && selector.Matches(labels.Set(of))
}

// KindOf returns the kind of a target. Its version is ignored.
func KindOf(target *v1beta1.TargetReference) schema.GroupKind {
	return schema.FromAPIVersionAndKind(target.APIVersion, target.Kind).GroupKind()
}
