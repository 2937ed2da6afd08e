package admission

import (
	"context"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Webhook answers the API server for one kind: it sets defaults, applies rules and converts between the versions.
type Webhook[H client.Object] struct {
	Kind Kind[H]
	// Default writes out what absent fields mean.
	Default func(H)
	// Validate judges what is created, or how an object changes. One that is being deleted is let through: only its
	// finalizers change, and nothing is made from its spec any more.
	Validate func(ctx context.Context, req Request[H]) (Findings, error)
	// Delete judges deletions; nil lets all through.
	Delete func(H) error
	// Convert is what Converting is given.
	Convert func(raw []byte, apiVersion string) ([]byte, error)
}

// Mutating sets defaults.
func (w Webhook[H]) Mutating() Endpoint {
	return Endpoint{Path: w.Kind.MutatePath(), Handler: w.Kind.Defaulting(func(_ context.Context, req Request[H]) error {
		w.Default(req.New)
		return nil
	})}
}

// Validating applies the rules.
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

// Converting converts between the versions.
func (w Webhook[H]) Converting() http.Handler { return Converting(w.Convert) }
