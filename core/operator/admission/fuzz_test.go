package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// postBytes sends a body to a handler as the API server does.
func postBytes(t *testing.T, handler http.Handler, body []byte) *httptest.ResponseRecorder {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	return recorder
}

// Any client that reaches the port can send any bytes: each request is answered, and an answer that allows is for a request.
func FuzzHandler(f *testing.F) {
	for _, body := range []string{
		`{"request":{"uid":"u","operation":"CREATE","kind":{"version":"v1beta1"},"object":{"spec":{"size":3}}}}`,
		`{"request":{"uid":"u","operation":"UPDATE","kind":{"version":"v1alpha1"},"object":{"metadata":{"annotations":{"example.com/parts":"a,b"}}},"oldObject":{}}}`,
		`{"request":{"uid":"u","operation":"DELETE","kind":{"version":"v1beta1"},"oldObject":{"spec":{"parts":[{"name":"a"}]}}}}`,
		`{"request":{"subResource":"eviction"}}`, `{"request":null}`, `[]`, ``,
	} {
		f.Add([]byte(body))
	}
	mutating := widgetKind().Defaulting(func(_ context.Context, req Request[*widget]) error {
		req.New.Spec.Size++
		return nil
	})
	validating := widgetKind().Validating(func(_ context.Context, req Request[*widget]) (Findings, error) {
		assert.Equal(f, req.Operation != admissionv1.Delete, req.New != nil)
		assert.Equal(f, req.Operation != admissionv1.Create, req.Old != nil)
		return Findings{}, nil
	})
	evicting := validating.Subresource("eviction", Evictions().Validating(nil))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, handler := range []http.Handler{mutating, validating, evicting} {
			recorder := postBytes(t, handler, body)
			require.Equal(t, http.StatusOK, recorder.Code)
			var review admissionv1.AdmissionReview
			require.NoError(t, json.Unmarshal(recorder.Body.Bytes(), &review))
			require.NotNil(t, review.Response)
			assert.True(t, review.Response.Allowed || review.Response.Result != nil, "a refusal has no status")
		}
	})
}

// A request for conversion is answered, or refused as malformed. An answer has all objects or none.
func FuzzConverting(f *testing.F) {
	f.Add([]byte(`{"request":{"uid":"u","desiredAPIVersion":"example.com/v1beta1","objects":[{"apiVersion":"example.com/v1alpha1","kind":"Widget"},{"apiVersion":"example.com/v1beta1"}]}}`))
	f.Add([]byte(`{"request":{"objects":[null,1,"a",[]]}}`))
	handler := Converting(widgetKind().Convert)
	f.Fuzz(func(t *testing.T, body []byte) {
		recorder := postBytes(t, handler, body)
		if recorder.Code != http.StatusOK {
			assert.Equal(t, http.StatusBadRequest, recorder.Code)
			return
		}
		var review apiextensionsv1.ConversionReview
		require.NoError(t, json.Unmarshal(recorder.Body.Bytes(), &review))
		require.NotNil(t, review.Response)
		assert.NotContains(t, review.Response.Result.Message, "[recovered]")
	})
}
