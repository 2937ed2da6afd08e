package manager

import (
	"net/http"
	"sync/atomic"
)

// leaving is whether the process is asked to end.
type leaving struct{ atomic.Bool }

// endConnections has each connection end with its next answer while the process is leaving. API servers keep connections, and a
// request that is sent while the server closes its connection fails: they do not repeat it.
func (l *leaving) endConnections(next http.Handler) http.Handler {
	if l == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l.Load() {
			w.Header().Set("Connection", "close") // with HTTP/2 the server sends GOAWAY
		}
		next.ServeHTTP(w, r)
	})
}
