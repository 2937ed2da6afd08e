package setup

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/flotilla-project/flotilla/core/controllers/events"
	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	coreadmission "github.com/flotilla-project/flotilla/core/operator/admission"
	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/operator/manager"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	budgetadmission "github.com/flotilla-project/flotilla/budget/internal/admission"
	"github.com/flotilla-project/flotilla/budget/internal/conversion"
	"github.com/flotilla-project/flotilla/budget/internal/cover"
	"github.com/flotilla-project/flotilla/budget/internal/disruption"
)

// republishPause is how old the selector of a workload's scale may be for a webhook after its status has changed.
const republishPause = time.Second

// refusals counts the refusals of budgets.
var refusals = prometheus.NewCounterVec(prometheus.CounterOpts{ //nolint:gochecknoglobals // as the registry is
	Name: "flotilla_budget_refusals_total",
	Help: "Disruptions of pods that a PodUnavailableBudget has refused, without dry runs.",
}, []string{"namespace", "budget", "operation"})

func init() { metrics.Registry.MustRegister(refusals) } //nolint:gochecknoinits // the registry is global

// webhooks returns the same endpoints whatever the feature gates are: webhook configurations name them, and the API
// server would refuse the request if an endpoint were absent.
func (s *settings) webhooks(_ context.Context, env *manager.Environment) (manager.Webhooks, error) {
	const part = "admission"
	live, err := env.APIReader(part)
	if err != nil {
		return manager.Webhooks{}, fmt.Errorf("make a reader for admission: %w", err)
	}
	shared, err := s.sharedLedger(env)
	if err != nil {
		return manager.Webhooks{}, err
	}
	if err := s.limit(env); err != nil {
		return manager.Webhooks{}, err
	}
	reader, err := newTargets(env, part, republishPause)
	if err != nil {
		return manager.Webhooks{}, err
	}
	refused, err := newRefused(env) //nolint:contextcheck // events leave until the manager ends
	if err != nil {
		return manager.Webhooks{}, err
	}
	cached := fastclient.NewReader(env.Manager.GetCache(), env.Manager.GetScheme(), fastclient.Options{Copy: env.Options.DisableNoDeepCopy})
	s.covers = cover.Reader{
		Cache:   cached,
		Targets: reader,
		Owning:  cover.NewOwning(env.Clock),
	}
	limited := coreadmission.LimitReads(live, coreadmission.PodReadLimiter())
	pods := budgetadmission.Pods{
		Cover:   s.covers,
		Ledger:  shared,
		Live:    limited,
		Gates:   env.Options.FeatureGates,
		Refused: refused,
	}
	on := isOn(env) && env.Options.FeatureGates.Enabled(features.PodWebhook)
	return manager.Webhooks{
		Mutating: []coreadmission.Endpoint{orAllow(on, pods.Marking())},
		Validating: []coreadmission.Endpoint{
			budgetadmission.Budgets{Cover: s.covers, Live: limited, Gates: env.Options.FeatureGates}.Validating(),
			orAllow(on, pods.Validating()),
		},
		Converting: coreadmission.Converting(conversion.Convert),
	}, nil
}

// newRefused returns a function that reports refusals: in a metric, in the log and in an event on the pod.
func newRefused(env *manager.Environment) (func(budgetadmission.Refusal), error) {
	recorder, err := events.Broadcast(env.Manager, "podunavailablebudget-webhook")
	if err != nil {
		return nil, err
	}
	log := env.Log.WithName("refusals")
	scheme := env.Manager.GetScheme()
	return func(r budgetadmission.Refusal) {
		refusals.WithLabelValues(r.Budget.Namespace, r.Budget.Name, string(r.Operation)).Inc()
		log.Info("A budget has refused to disrupt a pod", "budget", client.ObjectKeyFromObject(r.Budget), "pod", r.Pod.Name,
			"operation", r.Operation, "user", r.User, "why", r.Why)
		pod := events.Refer(scheme, r.Pod)
		budget := events.Refer(scheme, r.Budget)
		recorder.Eventf(pod, budget, corev1.EventTypeWarning, disruption.EventPrevented, string(r.Operation), "%s", events.Shorten(r.Why))
	}, nil
}

// orAllow allows all requests unchanged while the feature gates are off.
func orAllow(on bool, e coreadmission.Endpoint) coreadmission.Endpoint {
	if on {
		return e
	}
	return e.Answering(admission.Allowed, "")
}

// forgetRefusals ends the metric of budgets that are deleted.
func forgetRefusals(ctx context.Context, env *manager.Environment) error {
	informer, err := env.Manager.GetCache().GetInformer(ctx, &v1beta1.PodUnavailableBudget{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch budgets: %w", err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(o any) {
		key, err := toolscache.DeletionHandlingObjectToName(o)
		if err == nil {
			refusals.DeletePartialMatch(prometheus.Labels{"namespace": key.Namespace, "budget": key.Name})
		}
	}})
	if err != nil {
		return fmt.Errorf("watch budgets: %w", err)
	}
	return nil
}
