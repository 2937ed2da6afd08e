package sidecarterminator

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/controllers/base"
	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/optional"

	daemon "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

// ControllerName is the name of the controller in logs, metrics and its user agent.
const ControllerName = "sidecarterminator"

const (
	// workers is how many pods are reconciled at a time by default.
	workers = 3
	// lookPause is the time between two checks for the kind ContainerRecreateRequest, which another module may install
	// at any time.
	lookPause = 5 * time.Second
)

// requests is the kind by which sidecars are stopped on real nodes.
func requests() optional.Kind {
	return optional.Kind{
		GroupKind: schema.GroupKind{Group: contract.AppsGroup, Kind: daemon.ContainerRecreateRequestKind},
		Resource:  "containerrecreaterequests", Versions: []string{daemon.GroupVersion.Version},
	}
}

// SetUp adds the controller to the manager, with a cache of its own. Until the cluster serves ContainerRecreateRequest
// it serves virtual nodes only.
func SetUp(ctx context.Context, mgr ctrl.Manager, o base.Settings) error {
	mgr, err := withOwnCache(mgr, o.Namespace)
	if err != nil {
		return err
	}
	discovery, err := optional.NewDiscovery(mgr.GetConfig(), 0)
	if err != nil {
		return err
	}
	version, err := requests().Served(discovery)
	if err != nil {
		return err
	}
	begun := &atomic.Bool{}
	if version != "" {
		return start(ctx, mgr, o, true, func() bool { return false })
	}
	if err := start(ctx, mgr, o, false, begun.Load); err != nil {
		return err
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return await(ctx, mgr, o, discovery, begun) }))
}

// await starts the controller anew as soon as ContainerRecreateRequest is served.
func await(ctx context.Context, mgr ctrl.Manager, o base.Settings, discovery optional.Discovery, begun *atomic.Bool) error {
	tick := clock.RealClock{}.NewTicker(lookPause)
	defer tick.Stop()
	for {
		version, err := requests().Served(discovery)
		if err != nil {
			log.FromContext(ctx).Error(err, "It is not known whether container recreate requests are served")
		}
		if version != "" {
			begun.Store(true)
			return start(ctx, mgr, o, true, func() bool { return false })
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C():
		}
	}
}

// start adds the controller: events of pods whose main containers have ended wake it, and those of the requests for
// them.
func start(ctx context.Context, mgr ctrl.Manager, o base.Settings, served bool, over func() bool) error {
	name := ControllerName
	if !served {
		name += "-waiting"
	}
	kinds := map[client.Object]cache.ByObject{&corev1.Pod{}: Pods(o.Namespace)}
	if served {
		kinds[&daemon.ContainerRecreateRequest{}] = fastclient.Within(o.Namespace, cache.ByObject{})
		if err := fastclient.IndexOwners(ctx, mgr.GetFieldIndexer(), &daemon.ContainerRecreateRequest{}); err != nil {
			return err
		}
	}
	b, err := base.New(ctx, mgr, base.Options{Settings: o, Controller: name, EventSource: "sidecarterminator-controller", Kinds: kinds})
	if err != nil {
		return err
	}
	r := &reconciler{Controller: b, told: &memory{}, served: served, over: over}
	b.AddMemories(r.told)
	watch := ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(&corev1.Pod{}, builder.WithPredicates(concerns())).
		WithOptions(o.Options(workers))
	if served {
		watch = watch.Owns(&daemon.ContainerRecreateRequest{})
	}
	if err := watch.Complete(r); err != nil {
		return fmt.Errorf("make the controller: %w", err)
	}
	return nil
}
