package statefulset

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/frame"
	"github.com/flotilla-project/flotilla/core/workloads/conditions"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
	"github.com/flotilla-project/flotilla/statefulset/internal/statefulset/plan"
)

// watch has events of claims wake the sets that have pods with these claims by name.
func watch(c *frame.Controller, _ frame.Owners, b *builder.Builder) {
	b.Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(mounters(c)))
}

// adopters finds the set that could adopt a pod: the pod's name begins with the name of the set. Its selector must
// match.
func adopters(c *frame.Controller) func(context.Context, *corev1.Pod) []types.NamespacedName {
	return func(ctx context.Context, pod *corev1.Pod) []types.NamespacedName {
		end := strings.LastIndexByte(pod.Name, '-')
		if end < 0 {
			return nil
		}
		name := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name[:end]}
		set := setOf(ctx, c, name)
		if set == nil || !selects(set, pod.Labels) {
			return nil
		}
		return []types.NamespacedName{name}
	}
}

// selects reports whether the set's selector matches the labels. An empty one matches nothing.
func selects(set *v1beta1.StatefulSet, of map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	return err == nil && !selector.Empty() && selector.Matches(labels.Set(of))
}

// mounters finds the sets that have pods with a claim of that name, <template>-<set>-<ordinal>, and the one that was
// written on it when it was resized. Names may hold dashes: every way to read them is tried.
func mounters(c *frame.Controller) handler.MapFunc {
	return func(ctx context.Context, claim client.Object) []reconcile.Request {
		var found []reconcile.Request
		add := func(name types.NamespacedName) { found = append(found, reconcile.Request{NamespacedName: name}) }
		if resizer := claim.GetAnnotations()[v1beta1.OwnedByAnnotation]; resizer != "" {
			add(types.NamespacedName{Namespace: claim.GetNamespace(), Name: resizer})
		}
		name := claim.GetName()
		end := strings.LastIndexByte(name, '-')
		for i := 1; i < end; i++ {
			if name[i] != '-' {
				continue
			}
			key := types.NamespacedName{Namespace: claim.GetNamespace(), Name: name[i+1 : end]}
			if set := setOf(ctx, c, key); set != nil && (hasTemplate(set, name[:i]) || awaitsFormerClaim(set)) {
				add(key)
			}
		}
		return found
	}
}

func hasTemplate(set *v1beta1.StatefulSet, name string) bool {
	for i := range set.Spec.VolumeClaimTemplates {
		if set.Spec.VolumeClaimTemplates[i].Name == name {
			return true
		}
	}
	return false
}

// awaitsFormerClaim reports whether the set has pods that want a claim of a claim template that was removed.
func awaitsFormerClaim(set *v1beta1.StatefulSet) bool {
	c := conditions.Get(set.Status.Conditions, v1beta1.StatefulSetFailedCreatePod)
	return c != nil && c.Reason == plan.WaitClaimTemplateRemoved
}

// setOf is the cached StatefulSet, nil when there is none.
func setOf(ctx context.Context, c *frame.Controller, key types.NamespacedName) *v1beta1.StatefulSet {
	set, err := fastclient.Get[v1beta1.StatefulSet](ctx, c.Reader, key)
	if err != nil {
		return nil
	}
	return set
}
