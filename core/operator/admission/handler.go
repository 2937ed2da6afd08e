package admission

import (
	"context"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	webhook "sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// MutatePath is where the API server asks for the defaults of a kind: the path that controller-runtime and
// its generators use for it.
func MutatePath(kind schema.GroupVersionKind) string { return "/mutate-" + pathOf(kind) }

// ValidatePath is where the API server asks for the validation of a kind.
func ValidatePath(kind schema.GroupVersionKind) string { return "/validate-" + pathOf(kind) }

func pathOf(kind schema.GroupVersionKind) string {
	return strings.ReplaceAll(kind.Group, ".", "-") + "-" + kind.Version + "-" + strings.ToLower(kind.Kind)
}

// Endpoint is one path of the webhook server.
type Endpoint struct {
	Path    string
	Handler http.Handler
}

// Defaulting answers mutating requests by running defaults on req.New, and patches what they changed in the
// version sent. Requests for subresources and deletions are let through. An error that carries an API status
// is answered with that status, any other and a panic with 500.
func (k Kind[H]) Defaulting(defaults func(ctx context.Context, req Request[H]) error) http.Handler {
	return handler(func(ctx context.Context, raw webhook.Request) webhook.Response {
		if raw.Operation == admissionv1.Delete {
			return webhook.Allowed("")
		}
		req, version, err := k.newRequest(raw)
		if err != nil {
			return refusal(apierrors.NewBadRequest(err.Error()))
		}
		before := copyOf(req.New)
		if err := defaults(ctx, req); err != nil {
			return refusal(err)
		}
		if equality.Semantic.DeepEqual(before, req.New) {
			return webhook.Allowed("")
		}
		patch, err := version.patch(req.Object, before, req.New)
		if err != nil {
			return refusal(err)
		}
		return webhook.Patched("", patch...)
	})
}

// Validating answers validating requests. Findings with errors are answered with 422 and every error, in the
// paths of the version sent. An error that carries an API status, such as one of apierrors.NewForbidden, is
// answered with that status, any other and a panic with 500. Requests for subresources are let through.
func (k Kind[H]) Validating(validate func(ctx context.Context, req Request[H]) (Findings, error)) http.Handler {
	return handler(func(ctx context.Context, raw webhook.Request) webhook.Response {
		req, version, err := k.newRequest(raw)
		if err != nil {
			return refusal(apierrors.NewBadRequest(err.Error()))
		}
		found, err := validate(ctx, req)
		if err != nil {
			return refusal(err).WithWarnings(found.Warnings...)
		}
		if len(found.Errors) > 0 {
			return invalid(k.gk, req.Name, found.Errors, version.path).WithWarnings(found.Warnings...)
		}
		return webhook.Allowed("").WithWarnings(found.Warnings...)
	})
}

// handler is controller-runtime's webhook, which recovers panics and counts them, over the main resource.
func handler(handle webhook.HandlerFunc) http.Handler {
	return &webhook.Webhook{Handler: webhook.HandlerFunc(func(ctx context.Context, req webhook.Request) webhook.Response {
		if req.SubResource != "" {
			return webhook.Allowed("")
		}
		return handle(ctx, req)
	})}
}

func copyOf[H client.Object](object H) H {
	return object.DeepCopyObject().(H)
}
