package admission

import (
	"errors"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	webhook "sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Request is an admission request as rules see it.
type Request[H client.Object] struct {
	Operation admissionv1.Operation
	// Subresource is empty for the main resource, otherwise for instance status.
	Subresource string
	// New is the object as requested, Old as stored, both in the hub version. New is nil on delete, Old is nil on
	// create.
	New, Old H
	// Version is the version that the client used, such as v1alpha1.
	Version string
	// Object and OldObject are the bytes as sent, in that version. They must not be changed.
	Object, OldObject []byte
	// Namespace of the request, which new objects need not name, and name of the object, which may be empty while it
	// waits for a generated one.
	Namespace, Name string
	// DryRun requests must have no side effects.
	DryRun bool
	User   authenticationv1.UserInfo
}

// Findings are the errors and warnings of rules about a request.
type Findings struct {
	// Errors deny the request with status 422, all of them at once. Paths are paths of the hub version.
	Errors field.ErrorList
	// Warnings are shown to the user whether the object is refused or not.
	Warnings []string
}

// newRequest decodes an admission request in the version sent. Errors are the client's fault.
func (k Kind[H]) newRequest(req webhook.Request) (Request[H], Version[H], error) {
	out := Request[H]{
		Operation:   req.Operation,
		Subresource: req.SubResource,
		Version:     req.Kind.Version,
		Object:      req.Object.Raw,
		OldObject:   req.OldObject.Raw,
		Namespace:   req.Namespace,
		Name:        req.Name,
		DryRun:      req.DryRun != nil && *req.DryRun,
		User:        req.UserInfo,
	}
	version, err := k.version(req.Kind.Version)
	if err != nil {
		return out, version, err
	}
	if req.Operation != admissionv1.Delete {
		if out.New, err = version.decode(req.Object.Raw); err != nil {
			return out, version, err
		}
		out.Name = objectName(req.Name, out.New)
	}
	if req.Operation != admissionv1.Create {
		out.Old, err = version.decode(req.OldObject.Raw)
	}
	return out, version, err
}

// refusal returns a denial with the status that an error carries, otherwise with 500.
func refusal(err error) webhook.Response {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return webhook.Errored(http.StatusInternalServerError, err)
	}
	result := status.Status()
	response := webhook.Denied("")
	response.Result = &result
	return response
}

// invalid returns a 422 that lists every error, with paths of the version sent.
func invalid(kind schema.GroupKind, name string, errs field.ErrorList, path func(string) string) webhook.Response {
	sent := make(field.ErrorList, 0, len(errs))
	for _, err := range errs {
		renamed := *err
		renamed.Field = path(err.Field)
		sent = append(sent, &renamed)
	}
	return refusal(apierrors.NewInvalid(kind, name, sent))
}
