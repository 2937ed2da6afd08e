package setup

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/operator/manager"
	"github.com/flotilla-project/flotilla/core/testing/testenv"

	"github.com/flotilla-project/flotilla/spread/api/v1alpha1"
	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/featuregates"
	"github.com/flotilla-project/flotilla/spread/internal/workloadspread"
)

var env testenv.Environment

func TestMain(m *testing.M) {
	env.Run(m, testenv.Options{
		CRDs:     []string{"testdata/workloads.yaml"},
		Scheme:   testenv.Scheme(v1alpha1.AddToScheme, v1beta1.AddToScheme),
		Webhooks: envtest.WebhookInstallOptions{Paths: []string{"../config/webhook"}},
	})
}

// systemNamespace has the ConfigMap of further kinds.
const systemNamespace = "default"

// serve is serving, with all feature gates as they are, and returns when both versions of the kind are converted. The
// functions change the operator's settings.
func serve(t testing.TB, adapt ...func(*settings)) client.Client {
	t.Helper()
	c := serving(t, features.Defaults(featuregates.All()...), adapt...)
	env.ConvertHere(t, "workloadspreads.apps.kruise.io", oldSpread("default", "probe"))
	return c
}

// serving answers the webhooks of the shipped configurations with these feature gates and runs the controllers, as the
// operator does, until the test ends.
func serving(t testing.TB, gates features.Set, adapt ...func(*settings)) client.Client {
	t.Helper()
	s, environment := answering(t, gates, adapt...)
	require.NoError(t, s.setup(t.Context(), environment))
	env.Start(t, environment.Manager)
	return env.Client(t)
}

// admitting is serving without controllers: nothing but admission writes. It returns the operator's cache, too.
func admitting(t *testing.T) (client.Client, client.Reader) {
	t.Helper()
	_, environment := answering(t, features.Defaults(featuregates.All()...))
	env.Start(t, environment.Manager)
	return env.Client(t), environment.Manager.GetCache()
}

// installed installs the CRD as it is shipped, after an earlier test has changed its conversion.
func installed(t testing.TB) {
	t.Helper()
	env.Need(t)
	env.InstallCRDs(t, envtest.CRDInstallOptions{
		Paths: []string{"../config/crd/workloadspreads.yaml"}, ErrorIfPathMissing: true,
	})
}

// answering answers the webhooks until the test ends, once the manager of the environment has started.
func answering(t testing.TB, gates features.Set, adapt ...func(*settings)) (*settings, *manager.Environment) {
	t.Helper()
	installed(t)
	s, environment := replica(t, env, "", gates, adapt...)
	all, err := s.webhooks(t.Context(), environment)
	require.NoError(t, err)
	all.Register(environment.Manager.GetWebhookServer())
	return s, environment
}

// replica is an operator that reaches the server in its own way, for one namespace or, when it is empty, for all.
func replica(
	t testing.TB, over testenv.Environment, namespace string, gates features.Set, adapt ...func(*settings),
) (*settings, *manager.Environment) {
	t.Helper()
	s := newSettings()
	mgr := over.Manager(t, func(o *ctrlmanager.Options) { o.Cache = s.cache(namespace, systemNamespace) })
	s.pause = workloadspread.DefaultPause
	for _, f := range adapt {
		f(s)
	}
	environment := &manager.Environment{Feature: "spread", Manager: mgr, Clock: clock.RealClock{}, Options: manager.Options{FeatureGates: gates}}
	environment.Options.Namespace, environment.Options.Certificates.Namespace = namespace, systemNamespace
	return s, environment
}
