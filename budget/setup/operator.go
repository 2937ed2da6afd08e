package setup

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	coremarks "github.com/flotilla-project/flotilla/core/controllers/marks"
	"github.com/flotilla-project/flotilla/core/controllers/scope"
	"github.com/flotilla-project/flotilla/core/controllers/targets"
	"github.com/flotilla-project/flotilla/core/operator/manager"

	"github.com/flotilla-project/flotilla/budget/api/v1alpha1"
	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/cover"
	"github.com/flotilla-project/flotilla/budget/internal/featuregates"
	"github.com/flotilla-project/flotilla/budget/internal/ledger"
	"github.com/flotilla-project/flotilla/budget/internal/marks"
	"github.com/flotilla-project/flotilla/budget/internal/openkruise"
	"github.com/flotilla-project/flotilla/budget/internal/podunavailablebudget"
)

// defaultWorkers is how many budgets are reconciled at a time.
const defaultWorkers = 3

// settings are the operator's own flags.
type settings struct {
	workers int
	// logPath is OpenKruise's: refusals are in the log here.
	logPath string
	// scope is the set of namespaces with cached pods.
	scope *scope.Scope

	once   sync.Once
	ledger *ledger.Ledger
	err    error

	// covers is the reader of the webhooks.
	covers cover.Reader
}

func newSettings() *settings { return &settings{scope: scope.New(clock.RealClock{})} }

// Operator returns the manager of budgets.
func Operator() manager.Operator {
	s := newSettings()
	return manager.Operator{
		Feature:      "budget",
		FeatureGates: featuregates.All(),
		Schemes:      []func(*runtime.Scheme) error{v1beta1.AddToScheme, v1alpha1.AddToScheme},
		CRDs:         []string{"podunavailablebudgets.policy.kruise.io"},
		Flags:        s.add,
		Cache:        func(env *manager.Environment) cache.Options { return s.cache(env.Options.Namespace) },
		Webhooks:     s.webhooks,
		Setup:        s.setup,
		Fill:         s.fill,
	}
}

func (s *settings) add(flags *pflag.FlagSet) {
	flags.IntVar(&s.workers, "podunavailablebudget-workers", defaultWorkers, "how many PodUnavailableBudgets are reconciled at a time")
	flags.StringVar(&s.logPath, "protection-log-path", "", "ignored: refusals are written to the log of the process")
}

// cache defines the caches of the operator: pods of the scope with the fields that decide about budgets, and namespaces. An
// empty namespace means all.
func (s *settings) cache(namespace string) cache.Options {
	o := fastclient.CacheOptions(namespace, map[client.Object]cache.ByObject{
		&corev1.Pod{}:       podunavailablebudget.Pods(namespace),
		&corev1.Namespace{}: coremarks.Namespaces(namespace),
	})
	o.NewInformer = s.scope.Limit(o.NewInformer)
	return o
}

// isOn reports whether budgets are enforced at all.
func isOn(env *manager.Environment) bool {
	on := env.Options.FeatureGates.Enabled
	return on(featuregates.PodUnavailableBudgetDeleteGate) || on(featuregates.PodUnavailableBudgetUpdateGate)
}

func (s *settings) setup(ctx context.Context, env *manager.Environment) error {
	if !isOn(env) {
		return nil
	}
	indexer := env.Manager.GetFieldIndexer()
	if err := cover.AddIndexes(ctx, indexer); err != nil {
		return err
	}
	if err := marks.AddIndexes(ctx, indexer); err != nil {
		return fmt.Errorf("index pods by their marks: %w", err)
	}
	if err := s.limit(env); err != nil {
		return err
	}
	reader, err := newTargets(env, "targets", 0)
	if err != nil {
		return err
	}
	shared, err := s.sharedLedger(env)
	if err != nil {
		return err
	}
	covers := cover.Reader{Targets: reader, Owning: cover.NewOwning(env.Clock)}
	chosen := make(chan event.GenericEvent)
	err = podunavailablebudget.SetUp(ctx, env.Manager, podunavailablebudget.Options{
		Settings:   env.Settings(podunavailablebudget.ControllerName, s.workers),
		Cover:      covers,
		IsComplete: s.scope.Complete,
		Chosen:     chosen,
		Through:    shared.Through,
	})
	if err != nil {
		return fmt.Errorf("set up budgets: %w", err)
	}
	err = marks.SetUpPods(ctx, env.Manager, marks.Options{
		Settings: env.Settings(marks.PodController, 0),
		Cover:    covers,
		Pods:     podunavailablebudget.Pods(env.Options.Namespace),
		Chosen:   chosen,
	})
	if err != nil {
		return fmt.Errorf("set up marks of pods: %w", err)
	}
	err = coremarks.SetUp[v1beta1.PodUnavailableBudget](ctx, env.Manager, coremarks.Options{
		Settings:    env.Settings(coremarks.ControllerName, 0),
		EventSource: "podunavailablebudget-controller",
		Label:       v1beta1.NamespaceLabel,
	})
	if err != nil {
		return fmt.Errorf("set up labels of namespaces: %w", err)
	}
	if err := watchOpenKruise(env); err != nil {
		return err
	}
	return forgetRefusals(ctx, env)
}

// watchOpenKruise has the leader report while OpenKruise answers for budgets, too.
func watchOpenKruise(env *manager.Environment) error {
	const part = "openkruise"
	live, err := env.APIReader(part)
	if err != nil {
		return fmt.Errorf("make a reader of the webhooks of OpenKruise: %w", err)
	}
	if err := env.Manager.Add(&openkruise.Watch{Live: live, Clock: env.Clock, Log: env.Log.WithName(part)}); err != nil {
		return fmt.Errorf("look for OpenKruise: %w", err)
	}
	return nil
}

// sharedLedger returns the ledger, which the controller and the webhooks of a process share.
func (s *settings) sharedLedger(env *manager.Environment) (*ledger.Ledger, error) {
	s.once.Do(func() {
		const part = "admission"
		live, err := env.APIReader(part)
		if err != nil {
			s.err = fmt.Errorf("make a reader for the ledger: %w", err)
			return
		}
		writer, err := env.Client(part)
		if err != nil {
			s.err = fmt.Errorf("make a client for the ledger: %w", err)
			return
		}
		s.ledger = &ledger.Ledger{Client: writer, Live: live, Clock: env.Clock}
	})
	return s.ledger, s.err
}

// newTargets returns a reader of workloads of any kind, which asks the server as that part of the operator. pause is the
// shortest time between two questions about a workload that has changed its status alone.
func newTargets(env *manager.Environment, part string, pause time.Duration) (*targets.Reader, error) {
	live, err := env.APIReader(part)
	if err != nil {
		return nil, fmt.Errorf("make a reader of workloads: %w", err)
	}
	reader, err := targets.New(targets.Options{
		Cache:          env.Manager.GetCache(),
		Live:           live,
		Config:         env.Manager.GetConfig(),
		Mapper:         env.Manager.GetRESTMapper(),
		Namespace:      env.Options.Namespace,
		Clock:          env.Clock,
		Republishes:    cover.MaySelect,
		RepublishPause: pause,
		ByScale:        true,
		// The metadata of all pods would be cached for one that belongs to another.
		Follow: func(kind schema.GroupKind) bool { return kind != schema.GroupKind{Kind: "Pod"} },
	})
	if err != nil {
		return nil, fmt.Errorf("make a reader of workloads: %w", err)
	}
	return reader, nil
}
