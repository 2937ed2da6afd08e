package process

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
)

// reviews is an API server that knows the tokens of alice and bob, of whom alice may get metrics.
type reviews struct {
	asked  atomic.Int32
	broken atomic.Bool
}

func (s *reviews) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	s.asked.Add(1)
	if s.broken.Load() {
		http.Error(w, "broken", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if strings.HasSuffix(request.URL.Path, "/tokenreviews") {
		review := &authenticationv1.TokenReview{}
		_ = json.NewDecoder(request.Body).Decode(review)
		if name := review.Spec.Token; name == "alice" || name == "bob" {
			review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{
				Username: name, UID: "1", Groups: []string{"people"}, Extra: map[string]authenticationv1.ExtraValue{"scope": {"all"}},
			}}
		}
		_ = json.NewEncoder(w).Encode(review)
		return
	}
	review := &authorizationv1.SubjectAccessReview{}
	_ = json.NewDecoder(request.Body).Decode(review)
	want := authorizationv1.SubjectAccessReviewSpec{
		User: "alice", UID: "1", Groups: []string{"people"}, Extra: map[string]authorizationv1.ExtraValue{"scope": {"all"}},
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: MetricsPath, Verb: "get"},
	}
	review.Status.Allowed = assert.ObjectsAreEqual(want, review.Spec)
	_ = json.NewEncoder(w).Encode(review)
}

func TestMetricsAreReviewed(t *testing.T) {
	server := &reviews{}
	api := httptest.NewServer(server)
	defer api.Close()
	config := &rest.Config{Host: api.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	handler, err := Metrics{Gatherer: prometheus.NewRegistry(), Secure: true, Config: config, Log: logr.Discard()}.Handler()
	require.NoError(t, err)
	ask := func(method, path, authorization string) int {
		request := httptest.NewRequestWithContext(t.Context(), method, path, nil)
		if authorization != "" {
			request.Header.Set("Authorization", authorization)
		}
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		return answer.Code
	}
	for _, c := range []struct {
		method, path, authorization string
		want                        int
	}{
		{http.MethodGet, MetricsPath, "Bearer alice", http.StatusOK},
		{http.MethodGet, MetricsPath, "bearer  alice", http.StatusOK},
		{http.MethodPost, MetricsPath, "Bearer alice", http.StatusForbidden},
		{http.MethodGet, "/other", "Bearer alice", http.StatusForbidden},
		{http.MethodGet, MetricsPath, "Bearer bob", http.StatusForbidden},
		{http.MethodGet, MetricsPath, "Bearer mallory", http.StatusUnauthorized},
		{http.MethodGet, MetricsPath, "Basic alice", http.StatusUnauthorized},
		{http.MethodGet, MetricsPath, "Bearer ", http.StatusUnauthorized},
		{http.MethodGet, MetricsPath, "alice", http.StatusUnauthorized},
		{http.MethodGet, MetricsPath, "", http.StatusUnauthorized},
	} {
		assert.Equal(t, c.want, ask(c.method, c.path, c.authorization), "%+v", c)
		before := server.asked.Load()
		assert.Equal(t, c.want, ask(c.method, c.path, c.authorization), "%+v", c)
		assert.Equal(t, before, server.asked.Load(), "%+v: an answer counts for a while", c)
	}
	server.broken.Store(true)
	assert.Equal(t, http.StatusOK, ask(http.MethodGet, MetricsPath, "Bearer alice"), "what is known stays known")
	assert.Equal(t, http.StatusInternalServerError, ask(http.MethodGet, "/new", "Bearer alice"))
	server.broken.Store(false)
	assert.Equal(t, http.StatusForbidden, ask(http.MethodGet, "/new", "Bearer alice"), "an error is not kept")
}
