package operators

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/flotilla-project/flotilla/core/operator/manager"
	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
	"github.com/flotilla-project/flotilla/core/testing/testenv/faults"
)

// Replicas are operators as they run in a cluster, with leader election, but for their webhooks.
type Replicas struct {
	env       *testenv.Environment
	operator  func() manager.Operator
	namespace string // that they look after
	leases    string // namespace of their Lease
}

// NewReplicas returns replicas of an operator that look after a namespace. None runs yet.
func NewReplicas(t testing.TB, env *testenv.Environment, operator func() manager.Operator, namespace string) Replicas {
	t.Helper()
	return Replicas{
		env:       env,
		operator:  operator,
		namespace: namespace,
		leases:    env.Namespace(t),
	}
}

// starting is held while an operator is set up: each expects a registry of metrics of its own.
var starting sync.Mutex //nolint:gochecknoglobals // it guards the registry of controller-runtime, which is global

// Start starts one of them until it is stopped or the test ends. All its requests are made by send. One that loses its Lease
// ends and is started again, as in a cluster.
func (r Replicas) Start(t testing.TB, send faults.Send) (stop func()) {
	t.Helper()
	operator := r.operator()
	operator.Webhooks = nil
	options, err := manager.ReadOptions(operator, []string{
		"--metrics-addr=0", "--health-probe-addr=127.0.0.1:0", "--enable-pprof=false",
		"--namespace=" + r.namespace, "--leader-election-namespace=" + r.leases,
		"--leader-election-lease-duration=8s", "--leader-election-renew-deadline=4s", "--leader-election-retry-period=200ms",
	}, func(string) string { return "" })
	require.NoError(t, err)
	config := faults.Wrapped(r.env.Config, send)
	ctx, cancel := context.WithCancel(t.Context())
	ended := setUp(ctx, operator, options, config)
	select {
	case <-ended:
		cancel()
		t.Fatal("the operator has ended at once")
	default:
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for <-ended; ctx.Err() == nil; <-ended {
			time.Sleep(100 * time.Millisecond)
			ended = setUp(ctx, operator, options, config)
		}
	}()
	stop = func() {
		cancel()
		<-stopped
	}
	t.Cleanup(stop)
	return stop
}

// setUp runs the operator and returns once it is set up, or has ended, which the channel tells.
func setUp(ctx context.Context, operator manager.Operator, options manager.Options, config *rest.Config) <-chan struct{} {
	starting.Lock()
	defer starting.Unlock()
	arranged, ended := make(chan struct{}), make(chan struct{})
	inner := operator.Setup
	operator.Setup = func(ctx context.Context, e *manager.Environment) error {
		defer close(arranged)
		return inner(ctx, e)
	}
	metrics.Registry = prometheus.NewRegistry()
	go func() {
		defer close(ended)
		_ = manager.Run(ctx, operator, options, config, logr.Discard()) // who loses the Lease ends with an error
	}()
	select {
	case <-arranged:
	case <-ended:
	}
	return ended
}

// Leader waits until somebody else than the one given leads, and returns who.
func (r Replicas) Leader(t testing.TB, before string) (holder string) {
	t.Helper()
	c := r.env.Client(t)
	await.Until(t, func(collect *assert.CollectT) {
		lease := &coordinationv1.Lease{}
		require.NoError(collect, c.Get(t.Context(), client.ObjectKey{Namespace: r.leases, Name: r.operator().Feature + "-manager"}, lease))
		require.NotNil(collect, lease.Spec.HolderIdentity)
		holder = *lease.Spec.HolderIdentity
		assert.NotEmpty(collect, holder)
		assert.NotEqual(collect, before, holder)
	})
	return holder
}

// ChangeLeader begins something with two of them and cuts the leader off from its Lease after a number of writes. It
// returns once the other leads, with what counts the writes that arrived after the cut.
func (r Replicas) ChangeLeader(t testing.TB, writes int, begin func()) (landed func() int64) {
	t.Helper()
	line := faults.NewBadLine(writes)
	t.Cleanup(line.Wait)
	r.Start(t, line.First)
	leader := r.Leader(t, "")
	r.Start(t, line.Second)
	begin()
	r.Leader(t, leader)
	return line.Landed
}
