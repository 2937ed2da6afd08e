package manager

import (
	"context"
	"net/http"
	"slices"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/flotilla-project/flotilla/core/operator/admission"
	"github.com/flotilla-project/flotilla/core/operator/features"
)

// Operator is what one feature adds to the frame that all operators share.
type Operator struct {
	// Feature is the name of the feature, such as cloneset. Names of objects derive from it: the Lease
	// <feature>-manager, the Secret <feature>-webhook-certs, the Service <feature>-webhook, the configurations
	// <feature>-mutating and <feature>-validating.
	Feature string
	// Gates are the feature gates that the operator consults.
	Gates []features.Name
	// Schemes add the API types that the operator works with. The built-in ones are always known.
	Schemes []func(*runtime.Scheme) error
	// CRDs names the definitions of the operator's own kinds, such as clonesets.apps.kruise.io. Controllers start
	// when all of them are established. Those with a conversion webhook get the CA.
	CRDs []string
	// Flags adds the operator's own flags, such as --cloneset-workers. Optional.
	Flags func(*pflag.FlagSet)
	// Cache narrows what is cached and how. Optional.
	Cache func(*Environment) cache.Options
	// Webhooks returns what the webhook server answers. It runs before the cache is filled and on every replica.
	// Optional: an operator without webhooks needs no certificates and opens no port for them.
	Webhooks func(ctx context.Context, env *Environment) (Webhooks, error)
	// Setup adds indexes and controllers to env.Manager. It runs when the CRDs are there and before the cache
	// starts; controllers themselves start after leader election.
	Setup func(ctx context.Context, env *Environment) error
}

// Webhooks are the endpoints of an operator. Which are there decides which configurations are kept.
type Webhooks struct {
	// Mutating and Validating are called for by the configurations <feature>-mutating and <feature>-validating.
	Mutating, Validating []admission.Endpoint
	// Converting answers the conversion webhook of the operator's CRDs. Nil for kinds with one version.
	Converting http.Handler
}

// Webhook answers for one kind.
type Webhook interface {
	Mutating() admission.Endpoint
	Validating() admission.Endpoint
	Converting() http.Handler
}

// WebhooksOf returns the endpoints of an operator with one kind.
func WebhooksOf(w Webhook) Webhooks {
	return Webhooks{
		Mutating:   []admission.Endpoint{w.Mutating()},
		Validating: []admission.Endpoint{w.Validating()},
		Converting: w.Converting(),
	}
}

// Register makes the server answer at the endpoints.
func (w Webhooks) Register(server webhook.Server) {
	limit := admission.Reviews()
	for _, endpoint := range slices.Concat(w.Mutating, w.Validating) {
		server.Register(endpoint.Path, limit.Handle(endpoint.Handler))
	}
	if w.Converting != nil {
		server.Register(admission.ConvertPath, w.Converting)
	}
}

// restricted returns the endpoints for these callers only. Conversion stays open: API servers show no certificate
// there, and it tells nothing that the request does not say.
func (w Webhooks) restricted(to *callers) Webhooks {
	only := func(endpoints []admission.Endpoint) []admission.Endpoint {
		var all []admission.Endpoint
		for _, e := range endpoints {
			all = append(all, admission.Endpoint{Path: e.Path, Handler: to.only(e.Handler)})
		}
		return all
	}
	w.Mutating, w.Validating = only(w.Mutating), only(w.Validating)
	return w
}

func (w Webhooks) empty() bool {
	return len(w.Mutating) == 0 && len(w.Validating) == 0 && w.Converting == nil
}

// name returns what the operator is called in a cluster.
func (o Operator) name() string { return o.Feature + "-manager" }
