package manager

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/flotilla-project/flotilla/core/operator/admission"
)

// paths is a server that has handlers by path.
type paths struct {
	webhook.Server

	handlers map[string]http.Handler
}

// Register is part of webhook.Server.
func (p paths) Register(path string, h http.Handler) { p.handlers[path] = h }

// counting counts how often a body is read.
type counting struct {
	io.Reader

	reads int
}

func (c *counting) Read(into []byte) (int, error) {
	c.reads++
	return c.Reader.Read(into)
}

// Of a request without a certificate nothing is read: what it sends would take room away from the API server's.
func TestStrangersAreRefusedBeforeTheyAreRead(t *testing.T) {
	ca, _ := authority(t, "kube-apiserver")
	known, err := newCallers(Options{WebhookClientCAFile: ca})
	require.NoError(t, err)
	reached := false
	server := paths{handlers: map[string]http.Handler{}}
	Webhooks{Mutating: []admission.Endpoint{{Path: "/mutate", Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		reached = true
	})}}}.restricted(known).Register(server)
	body := &counting{}
	request, answer := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mutate", body), httptest.NewRecorder()
	request.ContentLength = 7 << 20
	server.handlers["/mutate"].ServeHTTP(answer, request)
	assert.Equal(t, http.StatusUnauthorized, answer.Code)
	assert.Zero(t, body.reads)
	assert.False(t, reached)
}
