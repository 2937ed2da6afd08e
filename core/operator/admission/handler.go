package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	webhook "sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Endpoint is one path of the webhook server.
type Endpoint struct {
	Path    string
	Handler http.Handler
}

// Answering returns an endpoint of the same path that gives all requests one answer, such as webhook.Denied with a
// message while a feature gate is off.
func (e Endpoint) Answering(answer func(message string) webhook.Response, message string) Endpoint {
	return Endpoint{Path: e.Path, Handler: &webhook.Webhook{
		Handler: webhook.HandlerFunc(func(context.Context, webhook.Request) webhook.Response { return answer(message) }),
	}}
}

// Handler answers the admission requests of one path. Requests for subresources that were not added are allowed.
type Handler struct {
	rules map[string]webhook.HandlerFunc // by subresource, empty for the main resource
	hook  *webhook.Webhook               // recovers panics of rules, and counts them
}

func newHandler(rules map[string]webhook.HandlerFunc) Handler {
	return Handler{rules: rules, hook: &webhook.Webhook{Handler: webhook.HandlerFunc(func(ctx context.Context, req webhook.Request) webhook.Response {
		if handle, ok := rules[req.SubResource]; ok {
			return handle(ctx, req)
		}
		return webhook.Allowed("")
	})}}
}

func newMainHandler(handle webhook.HandlerFunc) Handler {
	return newHandler(map[string]webhook.HandlerFunc{"": handle})
}

// Subresource returns the handler with a subresource, such as eviction: requests for it are answered by the rules that
// the other handler has for a main resource. They may be rules of another kind, because the objects of a subresource
// can be of another kind: pods/status and pods/resize are sent as Pod, pods/eviction as Eviction.
func (h Handler) Subresource(name string, other Handler) Handler {
	rules := maps.Clone(h.rules)
	rules[name] = other.rules[""]
	return newHandler(rules)
}

// ServeHTTP implements http.Handler. It decodes the request once; controller-runtime's own decoder reads it twice.
func (h Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	var answer webhook.Response
	if err := readReview(r, &review); err != nil {
		answer = webhook.Errored(http.StatusBadRequest, err)
	} else {
		answer = h.respond(r, webhook.Request{AdmissionRequest: *review.Request})
	}
	review.Request, review.Response = nil, &answer.AdmissionResponse
	w.Header().Set("Content-Type", "application/json")
	// An error means that the API server has closed the connection.
	_ = json.NewEncoder(w).Encode(review)
}

func (h Handler) respond(r *http.Request, req webhook.Request) webhook.Response {
	if req.SubResource == evictions {
		return h.respondToEviction(r, req)
	}
	return h.hook.Handle(r.Context(), req)
}

func readReview(r *http.Request, review *admissionv1.AdmissionReview) error {
	if content := r.Header.Get("Content-Type"); content != "application/json" {
		return fmt.Errorf("content type %q is not application/json", content)
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxReview))
	if err != nil {
		return fmt.Errorf("read the request: %w", err)
	}
	if err := utiljson.Unmarshal(body, review); err != nil {
		return fmt.Errorf("decode the request: %w", err)
	}
	if review.Request == nil {
		return errors.New("decode the request: the AdmissionReview lacks a request")
	}
	return nil
}

// Defaulting is Mutating for rules that have no findings, only errors.
func (k Kind[H]) Defaulting(defaults func(ctx context.Context, req Request[H]) error) Handler {
	return k.Mutating(func(ctx context.Context, req Request[H]) (Findings, error) {
		return Findings{}, defaults(ctx, req)
	})
}

// Mutating answers mutating requests by running the rules, which may change req.New, and returns their changes as a patch
// for the version sent. Findings and errors are answered as by Validating. Deletions are allowed.
func (k Kind[H]) Mutating(mutate func(ctx context.Context, req Request[H]) (Findings, error)) Handler {
	return newMainHandler(func(ctx context.Context, raw webhook.Request) webhook.Response {
		if raw.Operation == admissionv1.Delete {
			return webhook.Allowed("")
		}
		req, version, err := k.newRequest(raw)
		if err != nil {
			return refusal(apierrors.NewBadRequest(err.Error()))
		}
		before, err := version.encode(req.New)
		if err != nil {
			return refusal(fmt.Errorf("encode %s: %w", version.name, err))
		}
		found, err := mutate(ctx, req)
		if err != nil || len(found.Errors) > 0 {
			return k.answer(req.Name, version, found, err)
		}
		after, err := version.encode(req.New)
		if err != nil {
			return refusal(fmt.Errorf("encode %s: %w", version.name, err))
		}
		if bytes.Equal(before, after) {
			return k.answer(req.Name, version, found, nil)
		}
		patch, err := newPatch(req.Object, before, after)
		if err != nil {
			return refusal(err)
		}
		return webhook.Patched("", patch...).WithWarnings(found.Warnings...)
	})
}

// Validating answers validating requests. Findings with errors are answered with 422 and every error, in the
// paths of the version sent. An error that carries an API status is answered with that status: one of
// apierrors.NewForbidden with 403, one of apierrors.NewTooManyRequests with 429, and without Retry-After if it names 0
// seconds, so that clients do not repeat the request by themselves. Any other error and a panic are answered with 500.
// Warnings are part of each answer except the answer to a panic.
func (k Kind[H]) Validating(validate func(ctx context.Context, req Request[H]) (Findings, error)) Handler {
	return newMainHandler(func(ctx context.Context, raw webhook.Request) webhook.Response {
		req, version, err := k.newRequest(raw)
		if err != nil {
			return refusal(apierrors.NewBadRequest(err.Error()))
		}
		found, err := validate(ctx, req)
		return k.answer(req.Name, version, found, err)
	})
}

// answer returns the response to the findings of rules, without a patch.
func (k Kind[H]) answer(name string, version Version[H], found Findings, err error) webhook.Response {
	response := webhook.Allowed("")
	switch {
	case err != nil:
		response = refusal(err)
	case len(found.Errors) > 0:
		response = invalid(k.gk, name, found.Errors, version.path)
	}
	return response.WithWarnings(found.Warnings...)
}
