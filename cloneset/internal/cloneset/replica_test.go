package cloneset_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/flotilla-project/flotilla/core/operator/manager"
	"github.com/flotilla-project/flotilla/core/testing/testenv/faults"

	"github.com/flotilla-project/flotilla/cloneset/setup"
)

// replicas are operators as they run in a cluster, with leader election, but for their webhooks.
type replicas struct {
	namespace string // that they look after
	leases    string // namespace of their Lease
}

func newReplicas(t *testing.T, namespace string) replicas {
	t.Helper()
	return replicas{namespace: namespace, leases: env.Namespace(t)}
}

// start starts one of them until it is stopped or the test ends. All its requests are made by send.
func (r replicas) start(t *testing.T, send func(*http.Request, http.RoundTripper) (*http.Response, error)) (stop func()) {
	t.Helper()
	operator := setup.Operator()
	operator.Webhooks = nil
	arranged := make(chan struct{})
	inner := operator.Setup
	operator.Setup = func(ctx context.Context, e *manager.Environment) error {
		defer close(arranged)
		return inner(ctx, e)
	}
	options, err := manager.ReadOptions(operator, []string{
		"--metrics-addr=0", "--health-probe-addr=127.0.0.1:0", "--enable-pprof=false",
		"--namespace=" + r.namespace, "--leader-election-namespace=" + r.leases,
		"--leader-election-lease-duration=8s", "--leader-election-renew-deadline=4s", "--leader-election-retry-period=200ms",
	}, func(string) string { return "" })
	require.NoError(t, err)
	config := faults.Wrapped(env.Config, send)
	metrics.Registry = prometheus.NewRegistry() // each operator expects one of its own
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = manager.Run(ctx, operator, options, config, logr.Discard()) // who loses the Lease ends with an error
	}()
	stop = func() {
		cancel()
		<-ended
	}
	t.Cleanup(stop)
	select {
	case <-arranged:
	case <-ended:
		t.Fatal("the operator has ended at once")
	}
	return stop
}

// leader waits until somebody else than the one given leads, and returns who.
func (r replicas) leader(t *testing.T, before string) (holder string) {
	t.Helper()
	c := env.Client(t)
	eventually(t, func(collect *assert.CollectT) {
		lease := &coordinationv1.Lease{}
		require.NoError(collect, c.Get(t.Context(), client.ObjectKey{Namespace: r.leases, Name: "cloneset-manager"}, lease))
		require.NotNil(collect, lease.Spec.HolderIdentity)
		holder = *lease.Spec.HolderIdentity
		assert.NotEmpty(collect, holder)
		assert.NotEqual(collect, before, holder)
	})
	return holder
}

// pass is a request that is made as it is.
func pass(r *http.Request, next http.RoundTripper) (*http.Response, error) { return next.RoundTrip(r) }

func isLease(r *http.Request) bool { return strings.Contains(r.URL.Path, "/leases") }
