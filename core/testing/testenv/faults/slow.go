package faults

import (
	"net/http"
	"time"
)

// Slow is a server that answers each request so much later.
func Slow(by time.Duration) Send {
	return func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		select {
		case <-time.After(by):
			return next.RoundTrip(r)
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
}
