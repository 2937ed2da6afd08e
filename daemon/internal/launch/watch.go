package launch

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/flotilla-project/flotilla/daemon/internal/launch/plan"
	"github.com/flotilla-project/flotilla/daemon/internal/podmarks"
)

// concerns selects pods for which a plan could have something to do, and events after which it has not any more.
func concerns() predicate.Predicate {
	p := predicate.NewPredicateFuncs(func(o client.Object) bool {
		pod, ok := o.(*corev1.Pod)
		return ok && (plan.NeedsConfigMap(pod) || plan.NeedsReadiness(pod))
	})
	p.DeleteFunc = func(e event.DeleteEvent) bool {
		pod, ok := e.Object.(*corev1.Pod)
		return ok && podmarks.IsRelevant(pod)
	}
	return p
}
