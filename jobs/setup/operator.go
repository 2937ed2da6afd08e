package setup

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/nodes"
	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/operator/manager"

	nodeimage "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/api/v1alpha1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/advancedcronjob"
	"github.com/flotilla-project/flotilla/jobs/internal/broadcastjob"
	"github.com/flotilla-project/flotilla/jobs/internal/featuregates"
	"github.com/flotilla-project/flotilla/jobs/internal/imagelistpulljob"
	"github.com/flotilla-project/flotilla/jobs/internal/imagepulljob"
	"github.com/flotilla-project/flotilla/jobs/internal/sidecarterminator"
)

const (
	// defaultWorkers is how many objects of a kind are reconciled at a time.
	defaultWorkers = 3
	// defaultTTL and longestTTL bound, in seconds, how much longer than its job a tag stays on a node.
	defaultTTL, longestTTL = 300, 31 * 24 * 3600
)

// The names of the definitions of the kinds.
const (
	cronCRD      = "advancedcronjobs.apps.kruise.io"
	broadcastCRD = "broadcastjobs.apps.kruise.io"
	pullCRD      = "imagepulljobs.apps.kruise.io"
	listCRD      = "imagelistpulljobs.apps.kruise.io"
)

// settings are the operator's own flags.
type settings struct {
	controllers      controllers
	cronWorkers      int
	broadcastWorkers int
	byScheduler      bool // who binds the pods of BroadcastJobs
	pullWorkers      int
	ttl              ttlSeconds
	sidecarWorkers   int // how many pods are reconciled at a time by the terminator of sidecars
}

// Operator returns the manager of jobs.
func Operator() manager.Operator {
	s := &settings{controllers: allControllers(), ttl: defaultTTL}
	return manager.Operator{
		Feature:       "jobs",
		FeatureGates:  featuregates.All(),
		Schemes:       []func(*runtime.Scheme) error{v1beta1.AddToScheme, v1alpha1.AddToScheme, nodeimage.AddToScheme},
		CRDs:          []string{cronCRD, broadcastCRD, pullCRD, listCRD},
		SeparateKinds: true,
		Flags:         s.add,
		Cache:         func(env *manager.Environment) cache.Options { return Cache(env.Options.Namespace) },
		Webhooks:      webhooks,
		Setup:         s.setup,
	}
}

func (s *settings) add(flags *pflag.FlagSet) {
	flags.Var(&s.controllers, "controllers", "the controllers to run: * for all, name for one, -name for all others")
	flags.IntVar(&s.cronWorkers, "advancedcronjob-workers", defaultWorkers, "how many AdvancedCronJobs of each kind of jobs are reconciled at a time")
	flags.IntVar(&s.broadcastWorkers, "broadcastjob-workers", defaultWorkers, "how many BroadcastJobs are reconciled at a time")
	flags.BoolVar(&s.byScheduler, "assign-bcj-pods-by-scheduler", true, "let the scheduler bind pods of BroadcastJobs to their nodes; if false, the operator sets spec.nodeName")
	flags.IntVar(&s.pullWorkers, "imagepulljob-workers", defaultWorkers, "how many ImagePullJobs are reconciled at a time")
	flags.IntVar(&s.sidecarWorkers, "sidecarterminator-workers", defaultWorkers, "how many pods with sidecars are reconciled at a time")
	flags.Var(&s.ttl, "default-ttlseconds-for-always-nodeimage", "how long a tag stays in NodeImages after its job has ended, in seconds")
}

// Cache defines the objects that the operator caches: how far the Jobs of AdvancedCronJobs are, and the pods of
// BroadcastJobs.
func Cache(namespace string) cache.Options {
	return fastclient.CacheOptions(namespace, map[client.Object]cache.ByObject{
		&batchv1.Job{}: fastclient.Within(namespace, advancedcronjob.Jobs()),
		&corev1.Pod{}:  fastclient.Within(namespace, broadcastjob.Pods()),
		&corev1.Node{}: nodes.CachedWithAllocatable(),
	})
}

// configNamespace is where node agents read pull secrets.
func configNamespace() string {
	if name := os.Getenv(nodeimage.ConfigNamespaceEnv); name != "" {
		return name
	}
	return nodeimage.DefaultConfigNamespace
}

// part is a controller of the manager.
type part struct {
	name  string
	on    bool // by the feature gates
	needs manager.Needs
	setUp func(context.Context, *manager.Environment) error
}

// needs are definitions of kinds, which are read, and further kinds.
func needs(crds []string, reads ...schema.GroupResource) manager.Needs {
	for _, crd := range crds {
		reads = append(reads, schema.ParseGroupResource(crd))
	}
	return manager.Needs{CRDs: crds, Reads: reads}
}

// parts are all controllers.
func (s *settings) parts(env *manager.Environment) []part {
	return []part{
		{advancedcronjob.ControllerName, true, needs([]string{cronCRD}), s.setUpCrons},
		{broadcastjob.ControllerName, true, needs([]string{broadcastCRD}, corev1.Resource("pods"), corev1.Resource("nodes")), s.setUpBroadcasts},
		{imagepulljob.ControllerName, pulls(env), needs([]string{pullCRD}), s.setUpPulls},
		{imagelistpulljob.ControllerName, pulls(env), needs([]string{pullCRD, listCRD}), setUpLists},
		{sidecarterminator.ControllerName, env.Options.FeatureGates.Enabled(featuregates.SidecarTerminator), needs(nil, corev1.Resource("pods"), corev1.Resource("nodes")), s.setUpSidecars},
	}
}

func (s *settings) setup(ctx context.Context, env *manager.Environment) error {
	for _, p := range s.parts(env) {
		if !p.on || !s.controllers.run(p.name) {
			continue
		}
		if err := env.After(ctx, p.needs, p.setUp); err != nil {
			return fmt.Errorf("set up %s: %w", p.name, err)
		}
	}
	return nil
}

func (s *settings) setUpCrons(ctx context.Context, env *manager.Environment) error {
	return advancedcronjob.SetUp(ctx, env.Manager, advancedcronjob.Options{Settings: env.Settings(advancedcronjob.ControllerName, s.cronWorkers)})
}

func (s *settings) setUpBroadcasts(ctx context.Context, env *manager.Environment) error {
	return broadcastjob.SetUp(ctx, env.Manager, broadcastjob.Options{
		Settings: env.Settings(broadcastjob.ControllerName, s.broadcastWorkers), Bind: !s.byScheduler,
	})
}

func (s *settings) setUpPulls(ctx context.Context, env *manager.Environment) error {
	return imagepulljob.SetUp(ctx, env.Manager, imagepulljob.Options{
		Settings:        env.Settings(imagepulljob.ControllerName, s.pullWorkers),
		TTL:             time.Duration(s.ttl) * time.Second,
		ConfigNamespace: configNamespace(),
	})
}

func setUpLists(ctx context.Context, env *manager.Environment) error {
	if err := fastclient.IndexOwners(ctx, env.Manager.GetFieldIndexer(), &v1beta1.ImagePullJob{}); err != nil {
		return err
	}
	return imagelistpulljob.SetUp(ctx, env.Manager, env.Settings(imagelistpulljob.ControllerName, defaultWorkers))
}

func (s *settings) setUpSidecars(ctx context.Context, env *manager.Environment) error {
	return sidecarterminator.SetUp(ctx, env.Manager, env.Settings(sidecarterminator.ControllerName, s.sidecarWorkers))
}

// pulls reports whether the feature gates allow to pull images.
func pulls(env *manager.Environment) bool {
	on := env.Options.FeatureGates.Enabled
	return on(features.KruiseDaemon) && on(featuregates.ImagePullJobGate)
}
