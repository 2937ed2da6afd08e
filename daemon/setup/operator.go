package setup

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/scope"
	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/operator/manager"

	"github.com/flotilla-project/flotilla/daemon/api/v1alpha1"
	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/featuregates"
	"github.com/flotilla-project/flotilla/daemon/internal/launch"
	"github.com/flotilla-project/flotilla/daemon/internal/nodeimage"
	"github.com/flotilla-project/flotilla/daemon/internal/podcache"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate"
)

// Defaults of the operator's own flags.
const (
	// defaultWorkers is how many objects of a kind are reconciled at a time.
	defaultWorkers = 3
	// defaultCreationDelay is how long a node must have been ready before it gets a NodeImage.
	defaultCreationDelay = 30 * time.Second
)

// settings are the operator's own flags, and what its controllers tell its webhooks.
type settings struct {
	imageWorkers, requestWorkers int
	creationDelay                time.Duration
	backlog                      recreate.Backlog
	pods                         *scope.Filter
}

// Operator returns the manager of the node agent.
func Operator() manager.Operator {
	s := &settings{pods: podcache.Filter()}
	return manager.Operator{
		Feature:      "daemon",
		FeatureGates: featuregates.All(),
		Schemes:      []func(*runtime.Scheme) error{v1beta1.AddToScheme, v1alpha1.AddToScheme},
		CRDs:         []string{"nodeimages.apps.kruise.io", "containerrecreaterequests.apps.kruise.io"},
		Flags:        s.add,
		Cache:        func(env *manager.Environment) cache.Options { return s.cache(env.Options.Namespace) },
		Webhooks:     s.webhooks,
		Setup:        s.setup,
	}
}

func (s *settings) add(flags *pflag.FlagSet) {
	flags.IntVar(&s.imageWorkers, "nodeimage-workers", defaultWorkers, "how many NodeImages are reconciled at a time")
	flags.IntVar(&s.requestWorkers, "crr-workers", defaultWorkers, "how many ContainerRecreateRequests are reconciled at a time")
	flags.DurationVar(&s.creationDelay, "nodeimage-creation-delay", defaultCreationDelay,
		"how long a node must have been ready before it gets a NodeImage")
}

// cache defines the caches of the operator: pods with barriers or readiness gates that a plan answers, ConfigMaps with
// barriers, nodes without their images. An empty namespace means all.
func (s *settings) cache(namespace string) cache.Options {
	o := fastclient.CacheOptions(namespace, map[client.Object]cache.ByObject{
		&corev1.Pod{}:       podcache.ByObject(namespace),
		&corev1.ConfigMap{}: launch.ConfigMaps(namespace),
		&corev1.Node{}:      fastclient.Nodes(),
	})
	o.NewInformer = s.pods.Limit(o.NewInformer)
	return o
}

// part is a controller of the manager, with the kinds that it caches.
type part struct {
	name  string
	on    bool
	reads []schema.GroupResource
	setUp func(context.Context, *manager.Environment) error
}

func (s *settings) parts(env *manager.Environment) []part {
	agents := env.Options.FeatureGates.Enabled(features.KruiseDaemon)
	everywhere := env.Options.Namespace == ""
	if agents && !everywhere {
		env.Log.Info("NodeImages are cluster-scoped: with --namespace, the operator ignores them", "namespace", env.Options.Namespace)
	}
	kind := func(plural string) schema.GroupResource {
		return v1beta1.GroupVersion.WithResource(plural).GroupResource()
	}
	return []part{
		{"container launch priority", true, []schema.GroupResource{corev1.Resource("pods"), corev1.Resource("configmaps")}, setUpBarriers},
		{"container recreation", agents, []schema.GroupResource{corev1.Resource("pods"), kind("containerrecreaterequests")}, s.setUpRequests},
		{"node images", agents && everywhere, []schema.GroupResource{corev1.Resource("nodes"), kind("nodeimages")}, s.setUpImages},
	}
}

// setup adds each controller as soon as it may read the kinds that it caches: a missing permission blocks no other.
func (s *settings) setup(ctx context.Context, env *manager.Environment) error {
	for _, p := range s.parts(env) {
		if !p.on {
			continue
		}
		if err := env.After(ctx, manager.Needs{Reads: p.reads}, p.setUp); err != nil {
			return fmt.Errorf("set up %s: %w", p.name, err)
		}
	}
	return nil
}

func setUpBarriers(ctx context.Context, env *manager.Environment) error {
	return launch.SetUp(ctx, env.Manager, env.Settings(launch.ControllerName, 0))
}

func (s *settings) setUpRequests(ctx context.Context, env *manager.Environment) error {
	return recreate.SetUp(ctx, env.Manager, env.Settings(recreate.ControllerName, s.requestWorkers), &s.backlog, s.pods)
}

func (s *settings) setUpImages(ctx context.Context, env *manager.Environment) error {
	return nodeimage.SetUp(ctx, env.Manager, nodeimage.Options{
		Settings: env.Settings(nodeimage.ControllerName, s.imageWorkers), CreationDelay: s.creationDelay,
	})
}
