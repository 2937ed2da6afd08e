package faults

import (
	"net/http"
	"strings"

	"github.com/flotilla-project/flotilla/core/testing/testenv"
)

// Held are requests that get no answer until they are released.
type Held struct {
	// Asked gets an event for each of the first hundred.
	Asked    chan struct{}
	released chan struct{}
}

// Hold returns an environment that holds requests back whose path has that end.
func Hold(env testenv.Environment, end string) (testenv.Environment, *Held) {
	h := &Held{Asked: make(chan struct{}, 100), released: make(chan struct{})}
	return Over(env, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if strings.HasSuffix(r.URL.Path, end) {
			select {
			case h.Asked <- struct{}{}:
			default:
			}
			select {
			case <-h.released:
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		}
		return next.RoundTrip(r)
	}), h
}

// Release answers them.
func (h *Held) Release() { close(h.released) }
