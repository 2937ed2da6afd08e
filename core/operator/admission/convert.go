package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion/metrics"
)

// ConvertPath is the path of the conversion webhook.
const ConvertPath = "/convert"

// Converting answers conversion requests. The function converts the JSON of one object to an apiVersion, such as
// apps.kruise.io/v1beta1. It works on bytes, so that a kind can keep the parts that its versions share as they were
// written: a round trip through Go types rewrites embedded pod templates, and users' tools would see differences that no
// user made. Kinds without such parts pass Kind.Convert. A panic fails the conversion, and a request of more than
// maxConversion bytes is answered with status 413.
func Converting(convert func(raw []byte, apiVersion string) ([]byte, error)) http.Handler {
	return newLimit(maxConversion, maxConversion, maxConversions).Handle(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review apiextensionsv1.ConversionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(w, "the ConversionReview lacks a request", http.StatusBadRequest)
			return
		}
		review.Response = convertAll(r.Context(), review.Request, convert)
		review.Request = nil
		w.Header().Set("Content-Type", "application/json")
		// An error means that the API server has closed the connection.
		_ = json.NewEncoder(w).Encode(review)
	}))
}

// convertAll converts all objects or none.
func convertAll(ctx context.Context, request *apiextensionsv1.ConversionRequest, convert func([]byte, string) ([]byte, error)) *apiextensionsv1.ConversionResponse {
	response := &apiextensionsv1.ConversionResponse{UID: request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for i := range request.Objects {
		converted, err := recovering(ctx, func() ([]byte, error) { return convert(request.Objects[i].Raw, request.DesiredAPIVersion) })
		if err != nil {
			message := fmt.Sprintf("convert object %d of the request: %v", i, err)
			response.Result = metav1.Status{Status: metav1.StatusFailure, Message: message}
			response.ConvertedObjects = nil
			return response
		}
		response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Raw: converted})
	}
	return response
}

// recovering turns a panic into an error, counted and logged as controller-runtime does.
func recovering(ctx context.Context, convert func() ([]byte, error)) (converted []byte, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			metrics.WebhookPanics.WithLabelValues().Inc()
			for _, tell := range utilruntime.PanicHandlers {
				tell(ctx, cause)
			}
			err = fmt.Errorf("panic: %v [recovered]", cause)
		}
	}()
	return convert()
}

// Convert converts the JSON of an object of the kind to an apiVersion, through the hub and the Go types.
func (k Kind[H]) Convert(raw []byte, apiVersion string) ([]byte, error) {
	var sent metav1.TypeMeta
	if err := json.Unmarshal(raw, &sent); err != nil {
		return nil, fmt.Errorf("read apiVersion and kind: %w", err)
	}
	from, err := k.version(sent.GroupVersionKind().Version)
	if err != nil {
		return nil, err
	}
	wanted, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, err
	}
	to, err := k.version(wanted.Version)
	if err != nil {
		return nil, err
	}
	hub, err := from.decode(raw)
	if err != nil {
		return nil, fmt.Errorf("read %s as %s: %w", k.gk.Kind, from.name, err)
	}
	converted, err := to.encode(hub)
	if err != nil {
		return nil, fmt.Errorf("write %s as %s: %w", k.gk.Kind, to.name, err)
	}
	return withType(converted, metav1.TypeMeta{APIVersion: apiVersion, Kind: k.gk.Kind})
}

// withType returns the object under the apiVersion and kind.
func withType(raw []byte, t metav1.TypeMeta) ([]byte, error) {
	object := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, err
	}
	for name, value := range map[string]string{"apiVersion": t.APIVersion, "kind": t.Kind} {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		object[name] = text
	}
	return json.Marshal(object)
}
