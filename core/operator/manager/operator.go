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

// Operator describes the operator of one feature.
type Operator struct {
	// Feature is the name of the feature, such as cloneset. Names of objects derive from it: the Lease
	// <feature>-manager, the Secret <feature>-webhook-certs, the Service <feature>-webhook, the webhook configurations
	// <feature>-mutating and <feature>-validating.
	Feature string
	// MutatingConfiguration replaces the name <feature>-mutating. API servers call configurations in the order of their names.
	// Optional.
	MutatingConfiguration string
	// FeatureGates are the feature gates that the operator reads.
	FeatureGates []features.Gate
	// Schemes add API types to the scheme. The built-in ones are always in it.
	Schemes []func(*runtime.Scheme) error
	// CRDs are the names of the definitions of the operator's own kinds, such as clonesets.apps.kruise.io. Controllers
	// start when all of them are established. The CA is written into those with a conversion webhook.
	CRDs []string
	// SeparateKinds is true if each of the kinds can be installed without the others: Setup is called at once then, and
	// has each controller wait for its own CRDs by Environment.After.
	SeparateKinds bool
	// Flags adds the operator's own flags, such as --cloneset-workers. Optional.
	Flags func(*pflag.FlagSet)
	// Cache returns the options of the cache. Optional.
	Cache func(*Environment) cache.Options
	// Webhooks returns the endpoints of the webhook server. It is called before the cache starts and on every replica.
	// Optional: an operator without webhooks has no certificates and opens no port for them.
	Webhooks func(ctx context.Context, env *Environment) (Webhooks, error)
	// Setup adds indexes and controllers to env.Manager. It is called when the CRDs are established and before the
	// cache starts; controllers themselves start after leader election.
	Setup func(ctx context.Context, env *Environment) error
	// Fill waits until the caches are filled that the webhooks answer from, given the objects that are stored. A replica is
	// not ready before, for a minute at most. Fill returns an error at once where it cannot list the stored objects: API servers
	// may need a replica that is ready to convert them. Optional.
	Fill func(ctx context.Context, env *Environment) error
}

// Webhooks are the endpoints of an operator. They determine which webhook configurations get the CA.
type Webhooks struct {
	// Mutating and Validating are the endpoints of the configurations <feature>-mutating and <feature>-validating.
	Mutating, Validating []admission.Endpoint
	// Converting answers the conversion webhook of the operator's CRDs. Nil for kinds with one version.
	Converting http.Handler

	callers *callers // of all but conversions; nil: all
	leaving *leaving // nil: never
}

// Webhook has the endpoints of one kind.
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

// Register registers the endpoints with the server. A client that may not call them is rejected before anything of the
// request is read.
func (w Webhooks) Register(server webhook.Server) {
	limit := admission.Reviews()
	for _, endpoint := range slices.Concat(w.Mutating, w.Validating) {
		server.Register(endpoint.Path, w.leaving.endConnections(w.callers.restrict(limit.Handle(endpoint.Handler))))
	}
	if w.Converting != nil {
		server.Register(admission.ConvertPath, w.leaving.endConnections(w.Converting))
	}
}

// restricted returns the endpoints for these callers only. Conversion stays open: API servers send no client
// certificate there, and a response has nothing that the request does not have.
func (w Webhooks) restricted(to *callers) Webhooks {
	w.callers = to
	return w
}

func (w Webhooks) empty() bool {
	return len(w.Mutating) == 0 && len(w.Validating) == 0 && w.Converting == nil
}

// name returns the operator's name in a cluster.
func (o Operator) name() string { return o.Feature + "-manager" }
