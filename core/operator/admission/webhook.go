package admission

import (
	"context"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Webhook has the webhooks of one kind: defaults, validation and conversion.
type Webhook[H client.Object] struct {
	Kind Kind[H]
	// Default sets absent fields to their defaults.
	Default func(H)
	// Validate checks an object that is created, or how it changes. An update of an object that is being deleted is
	// allowed: only its finalizers change, and nothing is created from its spec any more.
	Validate func(ctx context.Context, req Request[H]) (Findings, error)
	// Delete checks deletions; nil allows all.
	Delete func(H) error
	// Convert is the function for Converting.
	Convert func(raw []byte, apiVersion string) ([]byte, error)
}

// Mutating returns the endpoint that sets defaults.
func (w Webhook[H]) Mutating() Endpoint {
	return Endpoint{Path: w.Kind.MutatePath(), Handler: w.Kind.Defaulting(func(_ context.Context, req Request[H]) error {
		w.Default(req.New)
		return nil
	})}
}

// Validating returns the endpoint that validates.
func (w Webhook[H]) Validating() Endpoint {
	return Endpoint{Path: w.Kind.ValidatePath(), Handler: w.Kind.Validating(func(ctx context.Context, req Request[H]) (Findings, error) {
		switch {
		case req.Operation == admissionv1.Delete && w.Delete != nil:
			return Findings{}, w.Delete(req.Old)
		case req.Operation == admissionv1.Delete || req.New.GetDeletionTimestamp() != nil:
			return Findings{}, nil
		}
		return w.Validate(ctx, req)
	})}
}

// Converting returns the handler that converts between the versions.
func (w Webhook[H]) Converting() http.Handler { return Converting(w.Convert) }
