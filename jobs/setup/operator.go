package setup

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/operator/manager"

	nodeimage "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/api/v1alpha1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/imagelistpulljob"
	"github.com/flotilla-project/flotilla/jobs/internal/imagepulljob"
)

const (
	// defaultWorkers is how many objects of a kind are reconciled at a time.
	defaultWorkers = 3
	// defaultTTL and longestTTL bound, in seconds, how much longer than its job a tag stays on a node.
	defaultTTL, longestTTL = 300, 31 * 24 * 3600
)

// settings are the operator's own flags.
type settings struct {
	controllers controllers
	pullWorkers int
	ttl         ttlSeconds
}

// Operator returns the manager of jobs.
func Operator() manager.Operator {
	s := &settings{controllers: allControllers(), ttl: defaultTTL}
	return manager.Operator{
		Feature:      "jobs",
		FeatureGates: []features.Name{features.KruiseDaemon, features.ImagePullJobGate, features.EnableExternalCerts},
		Schemes:      []func(*runtime.Scheme) error{v1beta1.AddToScheme, v1alpha1.AddToScheme, nodeimage.AddToScheme},
		CRDs: []string{
			"advancedcronjobs.apps.kruise.io", "broadcastjobs.apps.kruise.io", "imagepulljobs.apps.kruise.io", "imagelistpulljobs.apps.kruise.io",
		},
		Flags:    s.add,
		Cache:    func(env *manager.Environment) cache.Options { return Cache(env.Options.Namespace) },
		Webhooks: webhooks,
		Setup:    s.setup,
	}
}

func (s *settings) add(flags *pflag.FlagSet) {
	flags.Var(&s.controllers, "controllers", "the controllers to run: * for all, name for one, -name for all others")
	flags.IntVar(&s.pullWorkers, "imagepulljob-workers", defaultWorkers, "how many ImagePullJobs are reconciled at a time")
	flags.Var(&s.ttl, "default-ttlseconds-for-always-nodeimage", "how much longer than its job a tag stays in NodeImages, in seconds")
}

// Cache defines what the operator caches: of secrets only copies of pull secrets.
func Cache(namespace string) cache.Options {
	return fastclient.CacheOptions(namespace, map[client.Object]cache.ByObject{&corev1.Secret{}: imagepulljob.Secrets(configNamespace())})
}

// configNamespace is where node agents read pull secrets.
func configNamespace() string {
	if name := os.Getenv(nodeimage.ConfigNamespaceEnv); name != "" {
		return name
	}
	return nodeimage.DefaultConfigNamespace
}

func (s *settings) setup(ctx context.Context, env *manager.Environment) error {
	if !pulls(env) {
		return nil
	}
	if s.controllers.run(imagepulljob.ControllerName) {
		err := imagepulljob.SetUp(ctx, env.Manager, imagepulljob.Options{
			Settings: env.Settings(imagepulljob.ControllerName, s.pullWorkers),
			TTL:      time.Duration(s.ttl) * time.Second, ConfigNamespace: configNamespace(),
		})
		if err != nil {
			return fmt.Errorf("set up image pull jobs: %w", err)
		}
	}
	if s.controllers.run(imagelistpulljob.ControllerName) {
		if err := fastclient.IndexOwners(ctx, env.Manager.GetFieldIndexer(), &v1beta1.ImagePullJob{}); err != nil {
			return err
		}
		if err := imagelistpulljob.SetUp(ctx, env.Manager, env.Settings(imagelistpulljob.ControllerName, defaultWorkers)); err != nil {
			return fmt.Errorf("set up image list pull jobs: %w", err)
		}
	}
	return nil
}

// pulls reports whether the feature gates allow to pull images.
func pulls(env *manager.Environment) bool {
	on := env.Options.FeatureGates.Enabled
	return on(features.KruiseDaemon) && on(features.ImagePullJobGate)
}
