package nodeimage

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/nodeimage/plan"
)

// snapshot reads the objects of one node from the cache. Absent objects are nil.
func (r *reconciler) snapshot(ctx context.Context, name string) (plan.Snapshot, error) {
	s := plan.Snapshot{Name: name, CreationDelay: r.creationDelay, Now: r.Clock.Now()}
	var err error
	if s.Node, err = get[corev1.Node](ctx, r.Reader, name); err != nil {
		return s, fmt.Errorf("read node %s: %w", name, err)
	}
	if s.Image, err = get[v1beta1.NodeImage](ctx, r.Reader, name); err != nil {
		return s, fmt.Errorf("read node image %s: %w", name, err)
	}
	if s.Image == nil {
		return s, nil
	}
	s.Seen = r.sightings.See(s.Image, s.Now)
	s.Jobs, s.Secrets = map[plan.Job]bool{}, map[types.NamespacedName]bool{}
	for _, image := range s.Image.Spec.Images {
		for i := range image.Tags {
			r.lookForJobs(ctx, image.Tags[i].OwnerReferences, s.Jobs)
		}
		for _, secret := range image.PullSecrets {
			if secret.Mode == "" {
				r.secrets.look(ctx, types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name}, s.Secrets)
			}
		}
	}
	return s, nil
}

// lookForJobs records which jobs among the owners exist, each once.
func (r *reconciler) lookForJobs(ctx context.Context, owners []corev1.ObjectReference, found map[plan.Job]bool) {
	for i := range owners {
		job, ok := plan.JobOf(owners[i])
		if _, known := found[job]; !ok || known {
			continue
		}
		if there, known := r.jobs.there(ctx, job); known {
			found[job] = there
		}
	}
}

// get returns the object from the cache, nil when it is not there.
func get[T any, P fastclient.Object[T]](ctx context.Context, r *fastclient.Reader, name string) (*T, error) {
	object, err := fastclient.Get[T, P](ctx, r, types.NamespacedName{Name: name})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return object, err
}
