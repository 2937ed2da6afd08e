package nodeimage

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/flotilla-project/flotilla/core/controllers/optional"
	"github.com/flotilla-project/flotilla/core/controllers/pass"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

// ControllerName is the name of the controller in logs, metrics and its user agent.
const ControllerName = "nodeimage"

// workers is how many NodeImages are reconciled at a time by default.
const workers = 3

// Options change how the controller works.
type Options struct {
	pass.Settings
	// CreationDelay is how long a node must have been ready before it gets a NodeImage.
	CreationDelay time.Duration
}

// SetUp adds the controller to the manager: events of a NodeImage wake it, events of its node if they can change a
// plan, and the deletion of an ImagePullJob that owns a tag.
func SetUp(ctx context.Context, mgr ctrl.Manager, o Options) error {
	if err := indexJobs(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	parts, err := pass.New(ctx, mgr, pass.Options{
		Settings:    o.Settings,
		Controller:  ControllerName,
		EventSource: "nodeimage-controller",
		Kinds:       map[client.Object]cache.ByObject{&v1beta1.NodeImage{}: {}},
	})
	if err != nil {
		return err
	}
	r := newReconciler(parts, o.CreationDelay)
	made, err := ctrl.NewControllerManagedBy(mgr).
		Named(ControllerName).
		For(&v1beta1.NodeImage{}).
		Watches(&corev1.Node{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(nodeChanges())).
		WithOptions(o.Options(workers)).
		Build(r)
	if err != nil {
		return fmt.Errorf("make the controller: %w", err)
	}
	return followJobs(ctx, mgr, made, r)
}

// followJobs has the controller read and watch ImagePullJobs, at once or as soon as the cluster serves them and the operator
// may read them.
func followJobs(ctx context.Context, mgr ctrl.Manager, made controller.Controller, r *reconciler) error {
	discovery, err := optional.NewDiscovery(mgr.GetConfig(), 0)
	if err != nil {
		return err
	}
	g := &optional.Gate{
		Kind:      r.passes.jobs.Kind,
		Discovery: discovery,
		Client:    mgr.GetClient(),
	}
	return optional.Begin(ctx, mgr, optional.Beginning{
		Ready: g.Open,
		With: func(context.Context) error {
			if err := made.Watch(source.Kind[client.Object](mgr.GetCache(), r.passes.jobs.Metadata(g.Version()), r.jobHandler())); err != nil {
				return fmt.Errorf("watch image pull jobs: %w", err)
			}
			return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return r.passes.jobs.fill(ctx, mgr.GetCache(), g.Version()) }))
		},
	})
}
