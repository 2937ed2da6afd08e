package faults

import (
	"net/http"
	"sync/atomic"
)

// Kill forwards n writes and then fails all requests, as if the client had been killed right after the answer to the
// n-th write. It closes dead then.
func Kill(n int64) (send Send, dead <-chan struct{}) {
	var writes atomic.Int64
	over := make(chan struct{})
	return func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if isClosed(over) {
			return nil, ErrCut
		}
		if !IsWrite(r) {
			return next.RoundTrip(r)
		}
		number := writes.Add(1)
		if number > n {
			return nil, ErrCut
		}
		response, err := next.RoundTrip(r)
		if number == n {
			close(over)
		}
		return response, err
	}, over
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
