package imagepulljob

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-project/flotilla/core/controllers/base"
	"github.com/flotilla-project/flotilla/core/controllers/fastclient"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/imagepulljob/plan"
)

// releaseTime is how long after its job a copy is looked at: a job that went in order has released it by then.
const releaseTime = time.Second

// copyReconciler takes jobs out of the copies of secrets that they have used, if they went without doing so themselves:
// a client has removed their finalizers, for instance to end a namespace while no operator ran.
type copyReconciler struct{ *base.Controller }

// setUpCopies adds the controller of copies to the manager. The manager's cache must hold the copies.
func setUpCopies(ctx context.Context, mgr ctrl.Manager, o Options) error {
	b, err := base.New(ctx, mgr, base.Options{
		Settings: o.Settings, Controller: ControllerName + "-copies", EventSource: "imagepulljob-controller",
		Kinds: map[client.Object]cache.ByObject{&v1beta1.ImagePullJob{}: {}, &corev1.Secret{}: secrets(o.ConfigNamespace)},
	})
	if err != nil {
		return err
	}
	r := &copyReconciler{b}
	err = ctrl.NewControllerManagedBy(mgr).
		Named(ControllerName+"-copies").
		For(&corev1.Secret{}, builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&v1beta1.ImagePullJob{}, r.deletedJobs()).
		Complete(r)
	if err != nil {
		return fmt.Errorf("make the controller of copies: %w", err)
	}
	return nil
}

// deletedJobs wakes the copies that a deleted job still refers to.
func (r *copyReconciler) deletedJobs() handler.EventHandler {
	return handler.Funcs{
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			job := client.ObjectKeyFromObject(e.Object)
			found, err := fastclient.ByIndex[corev1.Secret](ctx, r.Reader, "", copyIndex, userKey(job.String()))
			if err != nil {
				log.FromContext(ctx).Error(err, "Failed to list the copies of secrets of a deleted job", "job", job)
			}
			for _, c := range found {
				q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(c)}, releaseTime)
			}
		},
	}
}

// Reconcile runs one pass over a copy.
func (r *copyReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return r.Handle(ctx, req, r.pass)
}

func (r *copyReconciler) pass(ctx context.Context, key types.NamespacedName) (base.Pass, error) {
	shown, err := fastclient.Get[corev1.Secret](ctx, r.Reader, key)
	if err != nil {
		return base.Pass{}, fmt.Errorf("read copy %s of a secret: %w", key, err)
	}
	var gone []string
	for _, job := range plan.References(shown) {
		_, err := fastclient.Get[v1beta1.ImagePullJob](ctx, r.Reader, plan.JobOf(job))
		switch {
		case apierrors.IsNotFound(err):
			gone = append(gone, job)
		case err != nil:
			return base.Pass{}, fmt.Errorf("read image pull job %s: %w", job, err)
		}
	}
	now := r.Clock.Now()
	return base.Pass{Object: shown, Plan: plan.Release(shown, gone, r.KnownRefusals(shown, nil, 0, now), now)}, nil
}
