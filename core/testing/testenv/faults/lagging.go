package faults

import (
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Lagging is a server that answers the lists that fill caches with the state at an old version, and delays newer events
// for a short time.
type Lagging struct {
	// Version is the point in the past, as a resourceVersion.
	Version string
	// Old are the resources that lag, such as "pods".
	Old []string

	lists atomic.Int64
}

// Lists returns how many lists had the old state.
func (s *Lagging) Lists() int64 { return s.lists.Load() }

// Send returns the way to the server.
func (s *Lagging) Send(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	query := r.URL.Query()
	lags := false
	for _, kind := range s.Old {
		lags = lags || strings.HasSuffix(r.URL.Path, kind)
	}
	switch {
	case r.Method != http.MethodGet || !lags:
		return next.RoundTrip(r)
	case query.Get("sendInitialEvents") == "true":
		return answer(r, apierrors.NewBadRequest("this server cannot list in a watch")) // so that the client lists
	case query.Has("watch"):
		response, err := next.RoundTrip(r)
		if err == nil {
			until := &atomic.Int64{}
			until.Store(time.Now().Add(time.Second / 2).UnixNano())
			response.Body = lateBody{response.Body, until}
		}
		return response, err
	case query.Get("resourceVersion") == "0": // any version will do; other lists ask for the latest
		s.lists.Add(1)
		query.Set("resourceVersion", s.Version)
		query.Set("resourceVersionMatch", "Exact")
		past := r.Clone(r.Context())
		past.URL.RawQuery = query.Encode()
		return next.RoundTrip(past)
	}
	return next.RoundTrip(r)
}
