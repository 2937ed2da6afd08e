package cloneset_test

import (
	"net/http"
	"testing"

	"github.com/flotilla-project/flotilla/core/testing/testenv/operators"

	"github.com/flotilla-project/flotilla/cloneset/setup"
)

// newReplicas are operators as they run in a cluster, for one namespace.
func newReplicas(t *testing.T, namespace string) operators.Replicas {
	t.Helper()
	return operators.NewReplicas(t, &env, setup.Operator, namespace)
}

// hand is a request that is made as it is.
func hand(r *http.Request, next http.RoundTripper) (*http.Response, error) { return next.RoundTrip(r) }
