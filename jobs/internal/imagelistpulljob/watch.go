package imagelistpulljob

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// childChanges selects the events of ImagePullJobs that matter to their parents.
func childChanges() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, okBefore := e.ObjectOld.(*v1beta1.ImagePullJob)
		after, okAfter := e.ObjectNew.(*v1beta1.ImagePullJob)
		if !okBefore || !okAfter {
			return true
		}
		a, b := before.Status, after.Status
		a.Message, b.Message = "", ""
		return before.Generation != after.Generation || !equality.Semantic.DeepEqual(a, b) ||
			(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil)
	}}
}
