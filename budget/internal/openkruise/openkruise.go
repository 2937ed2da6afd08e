package openkruise

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
)

const (
	// configuration is the name that OpenKruise's manager has in its code for the configuration of its webhooks.
	configuration = "kruise-validating-webhook-configuration"
	// resource is the name of the resource of budgets.
	resource = "podunavailablebudgets"
	// pause is the time between two looks.
	pause = 10 * time.Minute
)

// Trouble describes the problem if OpenKruise answers for budgets, too.
const Trouble = "OpenKruise also handles PodUnavailableBudgets: they are in ValidatingWebhookConfiguration " + configuration +
	". Both operators write the status, and each refuses disruptions by its own count; run: flotilla takeover budget"

// `beside` is global as its registry is.
var beside = prometheus.NewGauge(prometheus.GaugeOpts{ //nolint:gochecknoglobals // see above
	Name: "flotilla_budget_beside_openkruise",
	Help: "1 while OpenKruise also handles PodUnavailableBudgets, as seen by the leader; 0 otherwise.",
})

func init() { metrics.Registry.MustRegister(beside) } //nolint:gochecknoinits // the registry is global

// Answers reports whether the webhooks of OpenKruise answer for budgets. A takeover takes the rules for budgets away from
// them.
func Answers(ctx context.Context, live client.Reader) (bool, error) {
	c := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	err := live.Get(ctx, types.NamespacedName{Name: configuration}, c)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the webhooks of OpenKruise: %w", err)
	}
	return slices.ContainsFunc(c.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool {
		return slices.ContainsFunc(w.Rules, func(r admissionregistrationv1.RuleWithOperations) bool {
			return slices.Contains(r.APIGroups, v1beta1.GroupVersion.Group) && slices.Contains(r.Resources, resource)
		})
	}), nil
}

// Watch reports in the log and in a metric while OpenKruise answers for budgets. It runs in the leader: in the course of a
// takeover OpenKruise answers no more when the manager leads.
type Watch struct {
	Live  client.Reader
	Clock clock.WithTicker
	Log   logr.Logger

	told bool
}

// Start implements manager.Runnable.
func (w *Watch) Start(ctx context.Context) error {
	next := w.Clock.NewTicker(pause)
	defer next.Stop()
	defer beside.Set(0)
	for {
		w.look(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-next.C():
		}
	}
}

// look changes nothing if it cannot find out whether OpenKruise answers: that costs a hint.
func (w *Watch) look(ctx context.Context) {
	answers, err := Answers(ctx, w.Live)
	switch {
	case err != nil:
		w.Log.V(1).Info("Failed to check whether OpenKruise handles PodUnavailableBudgets", "why", err.Error())
		return
	case answers && !w.told:
		w.Log.Error(errors.New(Trouble), "Two operators handle PodUnavailableBudgets")
	case !answers && w.told:
		w.Log.Info("OpenKruise has stopped handling PodUnavailableBudgets")
	}
	w.told = answers
	beside.Set(0)
	if answers {
		beside.Set(1)
	}
}
