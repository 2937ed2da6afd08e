package cloneset

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/flotilla-project/flotilla/core/frame/engine"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// ControllerName names the controller in logs, metrics and its user agent.
const ControllerName = "cloneset"

// SetUp adds the controller to the manager: every event of a CloneSet, of its claims and of its
// revisions wakes it; of its pods those that a plan could judge differently.
func (r *Reconciler) SetUp(mgr ctrl.Manager, workers int) error {
	owners := engine.Owners{
		Kind:       v1beta1.GroupVersion.WithKind(v1beta1.Kind).GroupKind(),
		Candidates: engine.Selecting(r.Engine, func(set *v1beta1.CloneSet) *metav1.LabelSelector { return set.Spec.Selector }),
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(ControllerName).
		For(&v1beta1.CloneSet{}).
		Watches(&corev1.Pod{}, owners.Pods()).
		Watches(&corev1.PersistentVolumeClaim{}, owners.Objects()).
		Watches(&appsv1.ControllerRevision{}, owners.Objects()).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}
