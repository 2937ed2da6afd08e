package clitest

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Converter converts objects in the place of an operator: fields stay as they are.
type Converter struct{ server *httptest.Server }

// NewConverter serves conversions until the test ends. Cleanups that need them are registered later.
func NewConverter(t *testing.T) Converter {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(convert))
	t.Cleanup(server.Close)
	return Converter{server: server}
}

// Serve makes the API server ask it for the objects of a CRD.
func (c Converter) Serve(t *testing.T, crd string) {
	t.Helper()
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.server.Certificate().Raw})
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"conversion": map[string]any{"webhook": map[string]any{
		"clientConfig": map[string]any{
			"service":  nil,
			"url":      c.server.URL,
			"caBundle": base64.StdEncoding.EncodeToString(bundle),
		},
	}}}})
	require.NoError(t, err)
	definitions := schema.GroupVersionResource{
		Group:    "apiextensions.k8s.io",
		Version:  "v1",
		Resource: "customresourcedefinitions",
	}
	_, err = Objects(t).Resource(definitions).Patch(t.Context(), crd, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(t, err)
}

func convert(w http.ResponseWriter, r *http.Request) {
	var review struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Request    struct {
			UID               string           `json:"uid"`
			DesiredAPIVersion string           `json:"desiredAPIVersion"`
			Objects           []map[string]any `json:"objects"`
		} `json:"request"`
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for _, object := range review.Request.Objects {
		object["apiVersion"] = review.Request.DesiredAPIVersion
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"apiVersion": review.APIVersion,
		"kind":       review.Kind,
		"response":   map[string]any{"uid": review.Request.UID, "convertedObjects": review.Request.Objects, "result": map[string]any{"status": "Success"}},
	})
}
