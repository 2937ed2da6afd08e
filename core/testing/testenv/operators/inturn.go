package operators

import (
	"net/http"
	"sync/atomic"

	"github.com/flotilla-project/flotilla/core/operator/admission"
)

// InTurn returns the endpoints of replicas behind one address, as a Service has them: requests for a path go to each of the
// replicas in turn. All replicas have the same paths in the same order.
func InTurn(replicas ...[]admission.Endpoint) (all []admission.Endpoint) {
	for i, endpoint := range replicas[0] {
		var requests atomic.Uint64
		all = append(all, admission.Endpoint{Path: endpoint.Path, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			replicas[requests.Add(1)%uint64(len(replicas))][i].Handler.ServeHTTP(w, r)
		})})
	}
	return all
}
