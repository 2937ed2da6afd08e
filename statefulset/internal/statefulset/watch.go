package statefulset

import (
	"context"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/frame/engine"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// ControllerName names the controller in logs, metrics and its user agent.
const ControllerName = "statefulset"

// SetUp adds the controller to the manager: every event of a StatefulSet, of its revisions and of the
// claims that its pods have by name wakes it; of its pods those that a plan could judge differently.
func (r *Reconciler) SetUp(mgr ctrl.Manager, workers int) error {
	r.cache = mgr.GetCache()
	owners := engine.Owners{Kind: v1beta1.GroupVersion.WithKind(v1beta1.Kind).GroupKind(), Candidates: r.adopters}
	return ctrl.NewControllerManagedBy(mgr).
		Named(ControllerName).
		For(&v1beta1.StatefulSet{}).
		Watches(&corev1.Pod{}, owners.Pods()).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(r.mounters)).
		Watches(&appsv1.ControllerRevision{}, owners.Objects()).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}

// adopters is the set that could adopt a pod: the one whose name the pod's name begins with, if its
// selector matches.
func (r *Reconciler) adopters(ctx context.Context, pod *corev1.Pod) []types.NamespacedName {
	end := strings.LastIndexByte(pod.Name, '-')
	if end < 0 {
		return nil
	}
	name := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name[:end]}
	set := r.set(ctx, name)
	if set == nil || !selects(set, pod.Labels) {
		return nil
	}
	return []types.NamespacedName{name}
}

// selects says whether the set's selector matches the labels. An empty one matches nothing.
func selects(set *v1beta1.StatefulSet, of map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	return err == nil && !selector.Empty() && selector.Matches(labels.Set(of))
}

// mounters are the sets whose pods have a claim of that name, <template>-<set>-<ordinal>, and the one
// that was written on it when it was resized. Names may hold dashes: every way to read them is tried.
func (r *Reconciler) mounters(ctx context.Context, claim client.Object) []reconcile.Request {
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
		if set := r.set(ctx, key); set != nil && hasTemplate(set, name[:i]) {
			add(key)
		}
	}
	return found
}

func hasTemplate(set *v1beta1.StatefulSet, name string) bool {
	for i := range set.Spec.VolumeClaimTemplates {
		if set.Spec.VolumeClaimTemplates[i].Name == name {
			return true
		}
	}
	return false
}

// set is the cached StatefulSet, nil when there is none.
func (r *Reconciler) set(ctx context.Context, key types.NamespacedName) *v1beta1.StatefulSet {
	set, err := fastclient.Get[v1beta1.StatefulSet](ctx, r.Reader, key)
	if err != nil {
		return nil
	}
	return set
}
