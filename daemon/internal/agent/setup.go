package agent

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/operator/features"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/containermeta"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/containerrestart"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/containerstop"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/credentials"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/events"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/imagepull"
	"github.com/flotilla-project/flotilla/daemon/internal/featuregates"
)

// setUp adds everything that the agent does to the manager.
func (a *agent) setUp(ctx context.Context, mgr ctrl.Manager) error {
	recorder, err := events.New(a.config, a.scheme, a.Node)
	if err != nil {
		return err
	}
	if err := mgr.Add(recorder); err != nil {
		return fmt.Errorf("add events: %w", err)
	}
	stopper := &containerstop.Stopper{
		Runtimes: a.runtimes,
		Events:   recorder,
		Metrics:  a.metrics,
		Clock:    a.clock,
		HostIP:   a.HostIP,
	}
	if err := a.setUpPulls(ctx, mgr, recorder); err != nil {
		return fmt.Errorf("set up image pulls: %w", err)
	}
	restarts := containerrestart.Config{
		Settings: settings(),
		Node:     a.Node,
		Runtimes: a.runtimes,
		Stopper:  stopper,
	}
	if err := containerrestart.SetUp(ctx, mgr, restarts); err != nil {
		return fmt.Errorf("set up container restarts: %w", err)
	}
	a.probeInformer(mgr, "crrInformerSynced", &v1beta1.ContainerRecreateRequest{})
	if !a.FeatureGates.Enabled(featuregates.DaemonWatchingPod) {
		return nil
	}
	meta := containermeta.Config{
		Settings:        settings(),
		Node:            a.Node,
		Runtimes:        a.runtimes,
		Stopper:         stopper,
		Metrics:         a.metrics,
		Spread:          a.spread,
		EnvFromMetadata: a.FeatureGates.Enabled(features.InPlaceUpdateEnvFromMetadata),
	}
	if err := containermeta.SetUp(ctx, mgr, meta); err != nil {
		return fmt.Errorf("set up container metadata: %w", err)
	}
	a.probeInformer(mgr, "podInformerSynced", &corev1.Pod{})
	return nil
}

// settings returns the settings that all controllers share. No other process writes the fields that these controllers write.
func settings() pass.Settings { return pass.Settings{UserAgent: Name} }

func (a *agent) setUpPulls(ctx context.Context, mgr ctrl.Manager, recorder *events.Recorder) error {
	plugins, err := credentials.LoadPlugins(credentials.PluginConfig{
		File:    a.PluginConfigFile,
		Folder:  a.PluginBinDir,
		Environ: a.Environ,
		Clock:   a.clock,
		Log:     a.Log.WithName("credentials"),
	})
	if err != nil {
		return err
	}
	pulls, err := imagepull.SetUp(ctx, mgr, imagepull.Config{
		Settings: settings(),
		Node:     a.Node,
		Runtimes: a.runtimes,
		Credentials: credentials.New(credentials.Config{
			Reader:    mgr.GetAPIReader(),
			Namespace: a.ConfigNamespace,
			Plugins:   plugins,
			Clock:     a.clock,
			Log:       a.Log.WithName("credentials"),
		}),
		Events:  recorder,
		Metrics: a.metrics,
		Clock:   a.clock,
		Jitter:  a.jitter,
		Slots:   a.MaxWorkersForPullImage,
	})
	if err != nil {
		return err
	}
	a.probeInformer(mgr, "nodeImageInformerSynced", &v1beta1.NodeImage{})
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-a.wake:
				pulls.Wake()
			}
		}
	}))
}

// probeInformer makes the agent ready only once it knows all objects of a kind that are its business.
func (a *agent) probeInformer(mgr ctrl.Manager, name string, kind client.Object) {
	synced := make(chan struct{})
	a.probes.add(name, func() error {
		select {
		case <-synced:
			return nil
		default:
			return fmt.Errorf("objects of kind %T are not known yet", kind)
		}
	})
	_ = mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		informer, err := mgr.GetCache().GetInformer(ctx, kind) // waits for the first list
		if err == nil && informer.HasSynced() {
			close(synced)
		}
		return nil
	}))
}
