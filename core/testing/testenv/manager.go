package testenv

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
)

const (
	zapErrorLevel = zapcore.ErrorLevel
	stopTimeout   = 45 * time.Second // an event that is being sent is tried again for ten seconds
)

// Manager makes a manager for the server, without metrics server and leader election. It serves the webhooks of the
// environment, if there are any. The functions change its options.
func (e *Environment) Manager(t testing.TB, adapt ...func(*manager.Options)) manager.Manager {
	t.Helper()
	e.Need(t)
	o := manager.Options{
		Scheme:  e.Scheme,
		Logger:  e.logger(t),
		Metrics: server.Options{BindAddress: "0"},
	}
	o.Controller.SkipNameValidation = new(true)
	o.Controller.UsePriorityQueue = new(false) // as operators do
	if hooks := e.envtest.WebhookInstallOptions; hooks.LocalServingPort != 0 {
		o.WebhookServer = webhook.NewServer(webhook.Options{
			Host:    hooks.LocalServingHost,
			Port:    hooks.LocalServingPort,
			CertDir: hooks.LocalServingCertDir,
		})
	}
	for _, f := range adapt {
		f(&o)
	}
	mgr, err := ctrl.NewManager(e.Config, o)
	require.NoError(t, err)
	return mgr
}

// Start runs the manager until the end of the test. It returns when the manager is leader and its caches have synced. A
// manager that ends with an error fails the test.
func (e *Environment) Start(t testing.TB, mgr manager.Manager) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		select {
		case err := <-ended:
			require.NoError(t, err)
		case <-time.After(stopTimeout):
			t.Errorf("the manager has not ended within %s", stopTimeout)
		}
	})
	select {
	case <-mgr.Elected():
	case err := <-ended:
		ended <- err
		t.Fatalf("the manager has ended before it led: %v", err)
	}
	require.True(t, mgr.GetCache().WaitForCacheSync(ctx))
}

// Control runs the controller that setUp adds to a manager with these cache options, until the end of the test. Then it
// checks that no object in the cache was changed.
func (e *Environment) Control(t testing.TB, cached cache.Options, setUp func(manager.Manager, fastclient.Options) error) client.Client {
	t.Helper()
	detector := &fastclient.Detector{}
	t.Cleanup(func() { detector.Check(t) })
	mgr := e.Manager(t, func(o *manager.Options) { o.Cache = cached })
	require.NoError(t, setUp(mgr, fastclient.Options{Detector: detector}))
	e.Start(t, mgr)
	return e.Client(t)
}
