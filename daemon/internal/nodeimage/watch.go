package nodeimage

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/nodeimage/plan"
)

// jobIndex finds NodeImages by the UIDs of the ImagePullJobs that own tags of them.
const jobIndex = "spec.images.tags.ownerReferences.uid"

// indexJobs adds jobIndex to the informer of NodeImages.
func indexJobs(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &v1beta1.NodeImage{}, jobIndex, func(o client.Object) []string {
		image, ok := o.(*v1beta1.NodeImage)
		if !ok {
			return nil
		}
		return jobUIDs(image)
	})
	if err != nil {
		return fmt.Errorf("index node images by job: %w", err)
	}
	return nil
}

func jobUIDs(image *v1beta1.NodeImage) []string {
	seen := map[types.UID]bool{}
	var uids []string
	for name := range image.Spec.Images {
		for _, tag := range image.Spec.Images[name].Tags {
			for _, owner := range tag.OwnerReferences {
				if _, isJob := plan.JobOf(owner); isJob && !seen[owner.UID] {
					seen[owner.UID] = true
					uids = append(uids, string(owner.UID))
				}
			}
		}
	}
	return uids
}

// nodeChanges selects the events of nodes that matter to NodeImages. Heartbeats do not, nor do virtual nodes.
func nodeChanges() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, okBefore := e.ObjectOld.(*corev1.Node)
			after, okAfter := e.ObjectNew.(*corev1.Node)
			if !okBefore || !okAfter {
				return true
			}
			if plan.IsVirtual(before) && plan.IsVirtual(after) {
				return false
			}
			_, wasReady := plan.ReadySince(before)
			_, isReady := plan.ReadySince(after)
			return wasReady != isReady || plan.HasDiskPressure(before) != plan.HasDiskPressure(after) || !maps.Equal(before.Labels, after.Labels) ||
				(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) || before.UID != after.UID
		},
	}
}

// jobHandler wakes the NodeImages with tags of a deleted job.
func (r *reconciler) jobHandler() handler.EventHandler {
	return handler.Funcs{
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			images, err := fastclient.ByIndex[v1beta1.NodeImage](ctx, r.Reader, "", jobIndex, string(e.Object.GetUID()))
			if err != nil {
				log.FromContext(ctx).Error(err, "Failed to list the NodeImages of a deleted job", "job", client.ObjectKeyFromObject(e.Object))
				return
			}
			for _, image := range images {
				q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: image.Name}})
			}
		},
	}
}
