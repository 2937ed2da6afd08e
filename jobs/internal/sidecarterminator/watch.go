package sidecarterminator

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/flotilla-project/flotilla/jobs/internal/sidecarterminator/plan"
)

// concerns selects pods with sidecars that are to be stopped, and the end of pods with sidecars.
func concerns() predicate.Predicate {
	p := predicate.NewPredicateFuncs(func(o client.Object) bool {
		pod, ok := o.(*corev1.Pod)
		return ok && plan.Due(pod)
	})
	p.DeleteFunc = func(e event.DeleteEvent) bool {
		_, hasSidecars := e.Object.(*corev1.Pod)
		return hasSidecars
	}
	return p
}
