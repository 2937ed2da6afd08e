package sidecarterminator

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

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/optional"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/plan/action"

	daemon "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

// ControllerName is the name of the controller in logs, metrics and its user agent.
const ControllerName = "sidecarterminator"

const (
	// workers is how many pods are reconciled at a time by default.
	workers = 3
	// syncPatience is how long the start waits for the cache of requests. Later looks continue to wait.
	syncPatience = 10 * time.Second
)

// requests is the kind by which sidecars are stopped on real nodes.
func requests() optional.Kind {
	return optional.Kind{
		GroupKind: schema.GroupKind{Group: contract.AppsGroup, Kind: daemon.ContainerRecreateRequestKind},
		Resource:  "containerrecreaterequests",
		Versions:  []string{daemon.GroupVersion.Version},
	}
}

// rights are the permissions that the operator needs for requests.
func rights(namespace string) optional.Rights {
	return optional.Rights{
		Namespace: namespace,
		Group:     contract.AppsGroup,
		Resource:  requests().Resource,
		Verbs:     []string{"list", "watch", "create", "delete"},
	}
}

// SetUp adds the controller to the manager. It reads nodes from the manager's cache, and has a cache of its own for all
// else. Until the cluster serves ContainerRecreateRequest, and the operator may make some, it serves virtual nodes only.
func SetUp(ctx context.Context, mgr ctrl.Manager, o pass.Settings) error {
	nodes := fastclient.NewReader(mgr.GetCache(), mgr.GetScheme(), o.Reader)
	mgr, err := withOwnCache(ctx, mgr, o.Namespace)
	if err != nil {
		return err
	}
	discovery, err := optional.NewDiscovery(mgr.GetConfig(), 0)
	if err != nil {
		return err
	}
	access := &optional.Access{
		Rights: rights(o.Namespace),
		Client: mgr.GetClient(),
		Clock:  clock.RealClock{},
	}
	return optional.Begin(ctx, mgr, optional.Beginning{
		Ready:   func(ctx context.Context) (bool, error) { return ready(ctx, mgr, discovery, access) },
		Without: func(ctx context.Context, over func() bool) error { return start(ctx, mgr, o, nodes, over) },
		With:    func(ctx context.Context) error { return start(ctx, mgr, o, nodes, nil) },
	})
}

// ready reports whether requests can be made and are cached.
func ready(ctx context.Context, mgr ctrl.Manager, discovery optional.Discovery, access *optional.Access) (bool, error) {
	version, err := requests().Served(discovery)
	if err != nil || version == "" || len(access.Lacking(ctx)) > 0 {
		return false, err
	}
	return optional.SyncWithin(ctx, syncPatience, mgr.GetCache(), &daemon.ContainerRecreateRequest{})
}

// start adds the controller: events of pods with main containers that have ended wake it, and events of the requests
// for them. A controller without requests ends when over returns true; with them over is nil.
func start(ctx context.Context, mgr ctrl.Manager, o pass.Settings, nodes *fastclient.Reader, over func() bool) error {
	name, served := ControllerName, over == nil
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
	b, err := pass.New(ctx, mgr, pass.Options{
		Settings:    o,
		Controller:  name,
		EventSource: "sidecarterminator-controller",
		Kinds:       kinds,
	})
	if err != nil {
		return err
	}
	r := &reconciler{
		Controller: b,
		over:       over,
		passes: &passes{
			Reader:   b.Reader,
			Nodes:    nodes,
			Clock:    b.Clock,
			Served:   served,
			Refusals: func(of client.Object, now time.Time) action.Refusals { return b.KnownRefusals(of, nil, 0, now) },
		},
	}
	b.AddMemories(&r.passes.told)
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
