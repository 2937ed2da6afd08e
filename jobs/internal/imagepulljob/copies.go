package imagepulljob

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// releaseTime is how long after its job a copy is looked at: a job that went in order has released it by then.
const releaseTime = time.Second

// copyReconciler takes jobs out of the copies of secrets that they have used, if they went without doing so themselves:
// a client has removed their finalizers, for instance to end a namespace while no operator ran.
type copyReconciler struct {
	*pass.Controller
	passes *copyPasses
}

// setUpCopies adds the controller of copies to the manager. The manager's cache must hold the copies.
func setUpCopies(ctx context.Context, mgr ctrl.Manager, o Options, v *vault) error {
	b, err := pass.New(ctx, mgr, pass.Options{
		Settings:    o.Settings,
		Controller:  ControllerName + "-copies",
		EventSource: "imagepulljob-controller",
		Kinds:       map[client.Object]cache.ByObject{&v1beta1.ImagePullJob{}: {}, &corev1.Secret{}: secrets(o.ConfigNamespace)},
	})
	if err != nil {
		return err
	}
	r := &copyReconciler{b, &copyPasses{
		Shown: &caches{reader: b.Reader, vault: v}, Clock: b.Clock,
		Refusals: func(of client.Object, now time.Time) action.Refusals { return b.KnownRefusals(of, nil, 0, now) },
	}}
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
