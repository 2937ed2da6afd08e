package imagepulljob

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/controllers/base"
	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/optional"

	nodeimage "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/imagepulljob/plan"
)

// ControllerName is the name of the controller in logs, metrics and its user agent.
const ControllerName = "imagepulljob"

const (
	// workers is how many jobs are reconciled at a time by default.
	workers = 3
	// lookPause is the time between two checks for the kind NodeImage, which another module may install at any time.
	lookPause = 5 * time.Second
)

// Options change how the controller works.
type Options struct {
	base.Settings
	// TTL is how much longer than its job a tag stays on a node.
	TTL time.Duration
	// ConfigNamespace is where node agents read pull secrets.
	ConfigNamespace string
	// Clock ticks while NodeImage is not served; nil for the real one.
	Clock clock.WithTicker
}

// Secrets returns the settings of the cache of secrets: copies of pull secrets in one namespace, and no others.
func Secrets(configNamespace string) cache.ByObject {
	return cache.ByObject{Field: fields.OneTermEqualSelector("metadata.namespace", configNamespace), Transform: fastclient.Trim}
}

// nodeImages is the kind that the controller works on.
func nodeImages() optional.Kind {
	return optional.Kind{
		GroupKind: schema.GroupKind{Group: contract.AppsGroup, Kind: nodeimage.NodeImageKind},
		Resource:  "nodeimages", Versions: []string{nodeimage.GroupVersion.Version},
	}
}

// SetUp adds the controller to the manager, at once or as soon as the cluster serves NodeImage. The cache of an operator of
// one namespace holds no NodeImages, which belong to none.
func SetUp(ctx context.Context, mgr ctrl.Manager, o Options) error {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Namespace != "" {
		return wait(ctx, mgr, o, plan.OneNamespace, func() bool { return false })
	}
	discovery, err := optional.NewDiscovery(mgr.GetConfig(), 0)
	if err != nil {
		return err
	}
	version, err := nodeImages().Served(discovery)
	if err != nil {
		return err
	}
	if version != "" {
		return start(ctx, mgr, o)
	}
	begun := &atomic.Bool{}
	if err := wait(ctx, mgr, o, plan.NotInstalled, begun.Load); err != nil {
		return err
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return await(ctx, mgr, o, discovery, begun) }))
}

// await starts the controller as soon as NodeImage is served.
func await(ctx context.Context, mgr ctrl.Manager, o Options, discovery optional.Discovery, begun *atomic.Bool) error {
	if _, err := nodeImages().Await(ctx, discovery, o.Clock, lookPause); err != nil {
		return nil //nolint:nilerr // the manager ends
	}
	begun.Store(true)
	return start(ctx, mgr, o)
}

// wait adds the controller that says why nothing is pulled.
func wait(ctx context.Context, mgr ctrl.Manager, o Options, why plan.Obstacle, over func() bool) error {
	b, err := base.New(ctx, mgr, base.Options{
		Settings: o.Settings, Controller: ControllerName + "-waiting", EventSource: "imagepulljob-controller",
		Kinds: map[client.Object]cache.ByObject{&v1beta1.ImagePullJob{}: fastclient.Within(o.Namespace, cache.ByObject{})},
	})
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(ControllerName + "-waiting").
		For(&v1beta1.ImagePullJob{}).
		Complete(&waiting{Controller: b, why: why, over: over})
}

// start adds the controller: events of a job wake it, those of NodeImages that concern it, and those of copies of its
// secrets.
func start(ctx context.Context, mgr ctrl.Manager, o Options) error {
	if err := addIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	b, err := base.New(ctx, mgr, base.Options{
		Settings: o.Settings, Controller: ControllerName, EventSource: "imagepulljob-controller",
		Kinds: map[client.Object]cache.ByObject{
			&v1beta1.ImagePullJob{}: {}, &nodeimage.NodeImage{}: {}, &corev1.Secret{}: Secrets(o.ConfigNamespace),
		},
	})
	if err != nil {
		return err
	}
	r := &reconciler{
		Controller: b, ttl: o.TTL, namespace: o.ConfigNamespace,
		secrets: newSources(b.Live, o.ConfigNamespace, b.Clock),
		pods:    &podLists{live: b.Live, lists: answers[podList, []string]{clock: b.Clock, age: podAge}},
	}
	err = ctrl.NewControllerManagedBy(mgr).
		Named(ControllerName).
		For(&v1beta1.ImagePullJob{}).
		Watches(&nodeimage.NodeImage{}, r.nodeImages()).
		Watches(&corev1.Secret{}, copies(), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		WithOptions(o.Options(workers)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("make the controller: %w", err)
	}
	return setUpCopies(ctx, mgr, o)
}
