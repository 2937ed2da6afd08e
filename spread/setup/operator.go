package setup

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/marks"
	"github.com/flotilla-project/flotilla/core/controllers/scope"
	"github.com/flotilla-project/flotilla/core/controllers/targets"
	"github.com/flotilla-project/flotilla/core/operator/manager"

	"github.com/flotilla-project/flotilla/spread/api/v1alpha1"
	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/featuregates"
	"github.com/flotilla-project/flotilla/spread/internal/workloads"
	"github.com/flotilla-project/flotilla/spread/internal/workloadspread"
	"github.com/flotilla-project/flotilla/spread/internal/workloadspread/admission"
)

const (
	// defaultWorkers is how many spreads are reconciled at a time.
	defaultWorkers = 3
	// markGrace is how long a namespace keeps its label without a WorkloadSpread.
	markGrace = time.Minute
)

// settings are the operator's own flags, and the values that its controller and its webhooks share.
type settings struct {
	workers   int
	pause     time.Duration
	versioned versioned
	// scope is the set of namespaces with cached pods.
	scope *scope.Scope

	once   sync.Once
	shared *workloads.Reader
	err    error

	keeping   sync.Once
	keeper    *admission.Keeper
	keeperErr error
}

// Operator returns the manager of WorkloadSpread.
func Operator() manager.Operator {
	s := newSettings()
	return manager.Operator{
		Feature:               "spread",
		MutatingConfiguration: "10-spread-mutating",
		FeatureGates:          featuregates.All(),
		Schemes:               []func(*runtime.Scheme) error{v1beta1.AddToScheme, v1alpha1.AddToScheme},
		CRDs:                  []string{"workloadspreads.apps.kruise.io"},
		Flags:                 s.add,
		Cache: func(env *manager.Environment) cache.Options {
			return s.cache(env.Options.Namespace, env.Options.Certificates.Namespace)
		},
		Webhooks: s.webhooks,
		Setup:    s.setup,
		Fill:     s.fill,
	}
}

func newSettings() *settings {
	s := &settings{scope: scope.New(clock.RealClock{})}
	_ = s.versioned.Set("deployment,replicaset") // both are known
	return s
}

func (s *settings) add(flags *pflag.FlagSet) {
	flags.IntVar(&s.workers, "workloadspread-workers", defaultWorkers, "how many WorkloadSpreads are reconciled at a time")
	flags.DurationVar(&s.pause, "workloadspread-unschedulable-pause", workloadspread.DefaultPause,
		"how long a subset gets no new pods after pods were unschedulable there")
	flags.Var(&s.versioned, "ws-enabled-versioned-status", "kinds of workloads with maxReplicas of a subset for each revision instead of for all pods: deployment, replicaset, cloneset")
}

// cache defines the caches of the operator: pods of the scope with the fields that place them, nodes without their images,
// namespaces, and the ConfigMap of further kinds in the operator's own namespace, system. An empty namespace means all.
func (s *settings) cache(namespace, system string) cache.Options {
	o := fastclient.CacheOptions(namespace, map[client.Object]cache.ByObject{
		&corev1.Pod{}:       workloadspread.Pods(namespace),
		&corev1.Node{}:      fastclient.Nodes(),
		&corev1.Namespace{}: marks.Namespaces(namespace),
		&corev1.ConfigMap{}: workloadspread.Allowances(system),
	})
	o.NewInformer = s.scope.Limit(o.NewInformer)
	return o
}

// workloads returns the reader of workloads, which controller and webhooks share. ctx ends with the operator.
func (s *settings) workloads(ctx context.Context, env *manager.Environment) (*workloads.Reader, error) {
	s.once.Do(func() {
		live, err := env.APIReader("workloads")
		if err != nil {
			s.err = fmt.Errorf("make a reader of workloads: %w", err)
			return
		}
		config := &workloads.Config{
			Live:      live,
			Namespace: env.Options.Certificates.Namespace,
			Clock:     env.Clock,
		}
		s.shared, s.err = workloads.NewReader(ctx, config, targets.Options{
			Cache:     env.Manager.GetCache(),
			Live:      live,
			Config:    env.Manager.GetConfig(),
			Mapper:    env.Manager.GetRESTMapper(),
			Namespace: env.Options.Namespace,
			Clock:     env.Clock,
		})
	})
	return s.shared, s.err
}

// sharedKeeper returns the keeper of places, which controller and webhooks share.
func (s *settings) sharedKeeper(env *manager.Environment) (*admission.Keeper, error) {
	s.keeping.Do(func() {
		const part = "admission"
		live, err := env.APIReader(part)
		if err != nil {
			s.keeperErr = fmt.Errorf("make a reader for status updates: %w", err)
			return
		}
		writer, err := env.Client(part)
		if err != nil {
			s.keeperErr = fmt.Errorf("make a client for status updates: %w", err)
			return
		}
		cached := fastclient.NewReader(env.Manager.GetCache(), env.Manager.GetScheme(), fastclient.Options{})
		s.keeper = &admission.Keeper{
			Cached: cachedBy[v1beta1.WorkloadSpread](cached),
			Live:   live,
			Writer: writer,
			Clock:  env.Clock,
		}
	})
	return s.keeper, s.keeperErr
}

func (s *settings) setup(ctx context.Context, env *manager.Environment) error {
	if !env.Options.FeatureGates.Enabled(featuregates.WorkloadSpread) {
		return nil
	}
	reader, err := s.workloads(ctx, env)
	if err != nil {
		return err
	}
	if err := s.limit(env); err != nil {
		return err
	}
	keeper, err := s.sharedKeeper(env)
	if err != nil {
		return err
	}
	err = workloadspread.SetUp(ctx, env.Manager, workloadspread.Options{
		Settings:   env.Settings(workloadspread.ControllerName, s.workers),
		Workloads:  reader,
		IsComplete: s.scope.Complete,
		Versioned:  s.versioned.kinds,
		Pause:      s.pause,
		Through:    keeper.Through,
	})
	if err != nil {
		return fmt.Errorf("set up workload spreads: %w", err)
	}
	err = marks.SetUp[v1beta1.WorkloadSpread](ctx, env.Manager, marks.Options{
		Settings:    env.Settings(marks.ControllerName, 0),
		EventSource: "workloadspread-controller",
		Label:       v1beta1.NamespaceLabel,
		Grace:       markGrace,
	})
	if err != nil {
		return fmt.Errorf("set up labels of namespaces: %w", err)
	}
	return nil
}
