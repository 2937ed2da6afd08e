package imagepulljob

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/optional"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/plan/action"

	nodeimage "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/imagepulljob/plan"
)

// ControllerName is the name of the controller in logs, metrics and its user agent.
const ControllerName = "imagepulljob"

// workers is how many jobs are reconciled at a time by default.
const workers = 3

// Options change how the controller works.
type Options struct {
	pass.Settings
	// TTL is how much longer than its job a tag stays on a node.
	TTL time.Duration
	// ConfigNamespace is where node agents read pull secrets.
	ConfigNamespace string
}

// nodeImages is the kind that the controller works on.
func nodeImages() optional.Kind {
	return optional.Kind{
		GroupKind: schema.GroupKind{Group: contract.AppsGroup, Kind: nodeimage.NodeImageKind},
		Resource:  "nodeimages",
		Versions:  []string{nodeimage.GroupVersion.Version},
	}
}

// SetUp adds the controller to the manager, at once or as soon as the cluster serves NodeImage. The cache of an operator of
// one namespace holds no NodeImages, which belong to none.
func SetUp(ctx context.Context, mgr ctrl.Manager, o Options) error {
	if o.Namespace != "" {
		return wait(ctx, mgr, o, func() plan.Obstacle { return plan.OneNamespace }, optional.Never)
	}
	discovery, err := optional.NewDiscovery(mgr.GetConfig(), 0)
	if err != nil {
		return err
	}
	g := &optional.Gate{
		Kind:      nodeImages(),
		Discovery: discovery,
		Client:    mgr.GetClient(),
	}
	obstacle := func() plan.Obstacle {
		if g.Forbidden() {
			return plan.Forbidden
		}
		return plan.NotInstalled
	}
	return optional.Begin(ctx, mgr, optional.Beginning{
		Ready:   g.Open,
		Without: func(ctx context.Context, over func() bool) error { return wait(ctx, mgr, o, obstacle, over) },
		With:    func(setUp context.Context) error { return begin(ctx, setUp, mgr, o) },
	})
}

// begin adds the controller: without pull secrets at first, if the manager may not copy them. process ends with the
// process.
func begin(process, ctx context.Context, mgr ctrl.Manager, o Options) error {
	if err := addIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	v := &vault{
		access: &optional.Access{
			Rights: rights(o.ConfigNamespace),
			Client: mgr.GetClient(),
			Clock:  clock.RealClock{},
		},
		namespace: o.ConfigNamespace,
	}
	return optional.Begin(ctx, mgr, optional.Beginning{
		Ready:   func(ctx context.Context) (bool, error) { return v.open(process, ctx, mgr) },
		Without: func(ctx context.Context, over func() bool) error { return start(ctx, mgr, o, v, over) },
		With: func(ctx context.Context) error {
			mgr := v.with(mgr)
			if err := start(ctx, mgr, o, v, nil); err != nil {
				return err
			}
			return setUpCopies(ctx, mgr, o, v)
		},
	})
}

// wait adds the controller that reports why nothing is pulled.
func wait(ctx context.Context, mgr ctrl.Manager, o Options, why func() plan.Obstacle, over func() bool) error {
	b, err := pass.New(ctx, mgr, pass.Options{
		Settings:    o.Settings,
		Controller:  ControllerName + "-waiting",
		EventSource: "imagepulljob-controller",
		Kinds:       map[client.Object]cache.ByObject{&v1beta1.ImagePullJob{}: fastclient.Within(o.Namespace, cache.ByObject{})},
	})
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(ControllerName + "-waiting").
		For(&v1beta1.ImagePullJob{}).
		Complete(&waiting{Controller: b, why: why, over: over})
}

// start adds the controller: events of a job wake it, and events of NodeImages and of copies of secrets that concern
// the job. While the manager may not copy secrets, over reports whether it may by now; afterwards it is nil.
func start(ctx context.Context, mgr ctrl.Manager, o Options, v *vault, over func() bool) error {
	name := ControllerName
	kinds := map[client.Object]cache.ByObject{&v1beta1.ImagePullJob{}: {}, &nodeimage.NodeImage{}: {}}
	if over == nil {
		kinds[&corev1.Secret{}] = secrets(o.ConfigNamespace)
	} else {
		name += "-without-secrets"
	}
	b, err := pass.New(ctx, mgr, pass.Options{
		Settings:    o.Settings,
		Controller:  name,
		EventSource: "imagepulljob-controller",
		Kinds:       kinds,
	})
	if err != nil {
		return err
	}
	r := &reconciler{
		Controller: b,
		over:       over,
		passes: newPasses(sources{
			Shown: &caches{
				reader: b.Reader,
				nodes:  newNodeCache(mgr),
				vault:  v,
			},
			Live:          b.Live,
			Clock:         b.Clock,
			Refusals:      func(of client.Object, now time.Time) action.Refusals { return b.KnownRefusals(of, nil, 0, now) },
			TTL:           o.TTL,
			Namespace:     o.ConfigNamespace,
			WithoutCopies: over != nil,
		}),
	}
	watch := ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(&v1beta1.ImagePullJob{}).
		Watches(&nodeimage.NodeImage{}, r.nodeImages()).
		WithOptions(o.Options(workers))
	if over == nil {
		watch = watch.Watches(&corev1.Secret{}, copies(), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{}))
	}
	if err := watch.Complete(r); err != nil {
		return fmt.Errorf("make the controller: %w", err)
	}
	return nil
}
