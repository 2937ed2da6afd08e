package manager

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/flotilla-project/flotilla/core/controllers/optional"
	"github.com/flotilla-project/flotilla/core/internal/controllers/freshness"
	"github.com/flotilla-project/flotilla/core/operator/process"
)

// Run runs an operator until ctx ends or an error occurs. The order of the steps matters: our objects can be read only
// when conversion works, and watched only when their CRDs are established.
func Run(ctx context.Context, operator Operator, options Options, config *rest.Config, log logr.Logger) error {
	unhurried := withUserAgent(shapedConfig(config, options, certificateWriteLimit), operator.Feature, "certificates")
	env, config, err := newEnvironment(operator, options, config, log)
	if err != nil {
		return err
	}
	endpoints := Webhooks{}
	if operator.Webhooks != nil {
		if endpoints, err = operator.Webhooks(ctx, env); err != nil {
			return fmt.Errorf("set up webhooks: %w", err)
		}
	}
	hooks, err := newWebhooks(endpoints, operator, unhurried, env)
	if err != nil {
		return fmt.Errorf("set up webhooks: %w", err)
	}

	startup := newStartup()
	services, err := startServices(ctx, env, config, hooks, startup)
	if err != nil {
		return err
	}
	ends := services.beginLameDuck(ctx, hooks, startup, options.WebhookLameDuck)
	err = services.whileRunning(ctx, func(ctx context.Context) error {
		return runManager(ctx, operator, env, hooks, startup)
	})
	if ctx.Err() != nil {
		<-ends
	}
	return errors.Join(err, services.stop())
}

// runManager runs the manager while the services run.
func runManager(ctx context.Context, operator Operator, env *Environment, hooks *webhooks, startup *startup) error {
	if hooks != nil {
		startup.waitsFor("webhook certificates")
		if err := hooks.wait(ctx, env.Options.WebhookInitializeTimeout); err != nil {
			return ignoreEnd(ctx, err)
		}
	}
	if !operator.SeparateKinds {
		if err := startup.waitForCRDs(ctx, env, operator.CRDs); err != nil {
			return ignoreEnd(ctx, err)
		}
	}
	if err := operator.Setup(ctx, env); err != nil {
		return fmt.Errorf("set up controllers: %w", err)
	}
	if env.Options.BoundGarbage {
		if err := env.Manager.Add(newGarbage()); err != nil {
			return fmt.Errorf("bound the garbage: %w", err)
		}
	}
	go startup.waitForCaches(ctx, operator, env)
	return process.RunManager(ctx, env.Manager, env.Clock)
}

// ignoreEnd drops an error that only means that ctx has ended.
func ignoreEnd(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return nil
	default:
		return err
	}
}

// newEnvironment creates the manager, and the client configuration for everything else.
func newEnvironment(operator Operator, options Options, config *rest.Config, log logr.Logger) (*Environment, *rest.Config, error) {
	scheme := runtime.NewScheme()
	for _, add := range append([]func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme}, operator.Schemes...) {
		if err := add(scheme); err != nil {
			return nil, nil, fmt.Errorf("build scheme: %w", err)
		}
	}
	config = shapedConfig(config, options, options.LeaderElection.writeLimit())
	env := &Environment{
		Feature: operator.Feature,
		Options: options,
		Log:     log,
		Clock:   clock.RealClock{},
	}
	env.fence = freshness.NewFence(env.LeaderVersion)

	lock, err := env.newLock(withUserAgent(config, operator.Feature, "leader-election"))
	if err != nil {
		return nil, nil, fmt.Errorf("set up leader election: %w", err)
	}
	env.Manager, err = ctrlmanager.New(withUserAgent(config, operator.Feature, "manager"), ctrlmanager.Options{
		Scheme: scheme,
		Logger: log,
		Cache:  env.cacheOptions(operator),

		LeaderElection:                      options.LeaderElection.Enabled,
		LeaderElectionResourceLockInterface: lock,
		LeaderElectionReleaseOnCancel:       true,
		LeaderElectionID:                    options.LeaderElection.ID,
		LeaseDuration:                       &options.LeaderElection.LeaseDuration,
		RenewDeadline:                       &options.LeaderElection.RenewDeadline,
		RetryPeriod:                         &options.LeaderElection.RetryPeriod,

		// The services serve metrics, probes and profiles, because they start earlier.
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		Controller: ctrlconfig.Controller{
			CacheSyncTimeout: options.CacheSyncTimeout,
			// Names are unique within an operator; tests run several replicas in one process.
			SkipNameValidation: new(true),
			// All measured figures are of plain queues. Up to controller-runtime v0.24 a priority queue that is shut down
			// could also wait without end for a worker that has gone, and the lease with it until the manager gives up.
			UsePriorityQueue: new(false),
		},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("set up manager: %w", err)
	}
	return env, config, nil
}

// shapedConfig limits the rate of requests if configured, and the duration of writes always. Forbidden requests are
// counted.
func shapedConfig(config *rest.Config, options Options, limit time.Duration) *rest.Config {
	config = options.Limit(config)
	config.Wrap(limitWrites(limit))
	config.Wrap(optional.CountForbidden())
	return config
}

func withUserAgent(config *rest.Config, feature, part string) *rest.Config {
	config = rest.CopyConfig(config)
	config.UserAgent = userAgent(feature, part)
	return config
}

func (e *Environment) cacheOptions(operator Operator) cache.Options {
	var options cache.Options
	if operator.Cache != nil {
		options = operator.Cache(e)
	}
	if e.Options.SyncPeriod > 0 {
		options.SyncPeriod = &e.Options.SyncPeriod
	}
	if e.Options.Namespace != "" {
		// With the selector each kind has one informer, which reads that namespace only: the freshness tracker needs
		// exactly one.
		options.DefaultFieldSelector = fields.OneTermEqualSelector("metadata.namespace", e.Options.Namespace)
	}
	return options
}

// newLock returns the operator's Lease as a lock with a holder identity that LeaderVersion can check; nil without leader
// election.
func (e *Environment) newLock(config *rest.Config) (resourcelock.Interface, error) {
	election := e.Options.LeaderElection
	if !election.Enabled {
		return nil, nil
	}
	hostname, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	e.identity = hostname + "_" + string(uuid.NewUUID())
	config.Timeout = max(election.RenewDeadline/2, election.RetryPeriod) // one slow request must not cost the lease
	leases, err := coordinationv1client.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return resourcelock.New(resourcelock.LeasesResourceLock, election.Namespace, election.ID, nil, leases,
		resourcelock.ResourceLockConfig{Identity: e.identity})
}
