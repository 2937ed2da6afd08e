package advancedcronjob

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/advancedcronjob/plan"
)

// crons selects the AdvancedCronJobs that make jobs of the kind.
func (k *kind) crons() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool {
		cron, ok := o.(*v1beta1.AdvancedCronJob)
		return ok && plan.KindOf(cron) == k.name
	})
}

// progress selects the events of jobs that change the plan: jobs come, go, start, end, or are given away.
func (k *kind) progress() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := k.child(e.ObjectOld), k.child(e.ObjectNew)
		return before.State != after.State || !before.Started.Equal(after.Started) || !before.Ended.Equal(after.Ended) ||
			(e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil) ||
			len(e.ObjectOld.GetOwnerReferences()) != len(e.ObjectNew.GetOwnerReferences())
	}}
}
