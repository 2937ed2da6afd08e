package operators

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/flotilla-project/flotilla/core/operator/manager"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
)

// runsAtLeast is how long an operator must run without its CRD.
const runsAtLeast = time.Second

// Start runs the operator until the end of the test. One that ends before fails the test.
func Start(t testing.TB, env *testenv.Environment, operator manager.Operator, flags ...string) (ended <-chan error) {
	t.Helper()
	env.Need(t)
	operator.Webhooks = nil
	flags = append([]string{
		"--metrics-addr=0", "--health-probe-addr=127.0.0.1:0", "--enable-pprof=false", "--leader-election-namespace=default",
		"--leader-election-lease-duration=2m", "--leader-election-renew-deadline=80s", "--leader-election-retry-period=1s",
	}, flags...)
	options, err := manager.ReadOptions(operator, flags, func(string) string { return "" })
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	end := make(chan error, 1)
	go func() { end <- manager.Run(ctx, operator, options, env.Config, logr.Discard()) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-end)
	})
	return end
}

// StartBefore starts the operator, and installs its CRD from the file some time later.
func StartBefore(t testing.TB, env *testenv.Environment, operator manager.Operator, crd string) {
	t.Helper()
	ended := Start(t, env, operator)
	require.Never(t, func() bool { return len(ended) > 0 }, runsAtLeast, runsAtLeast/20, "the operator ended")
	env.InstallCRDs(t, envtest.CRDInstallOptions{Paths: []string{crd}})
}
