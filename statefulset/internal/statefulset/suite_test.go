package statefulset_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/testing/simnodes"
	"github.com/flotilla-project/flotilla/core/testing/testenv"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
	"github.com/flotilla-project/flotilla/statefulset/internal/statefulset"
	"github.com/flotilla-project/flotilla/statefulset/internal/statefulset/plan"
)

const userAgent = "statefulset-manager/statefulset"

var env testenv.Environment

func TestMain(m *testing.M) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	env.Run(m, testenv.Options{CRDs: []string{"../../config/crd/statefulsets.yaml"}, Scheme: scheme})
}

// givenController runs the controller and simulated nodes until the end of the test, and checks
// then that nobody has changed an object of the cache.
func givenController(t *testing.T, featureGates ...func(*plan.FeatureGates)) {
	t.Helper()
	givenNodes(t, simnodes.Options{Bind: true})
	startController(t, env, "", featureGates...)
}

// givenNodes runs three simulated nodes until the end of the test.
func givenNodes(t *testing.T, options simnodes.Options) {
	t.Helper()
	env.Need(t)
	options.Nodes, options.LeasePeriod = 3, simnodes.NoLeases
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	_, err := simnodes.Start(ctx, env.ConfigAs(t, simnodes.UserAgent), options)
	require.NoError(t, err)
}

// startController starts the controller, which finds whatever the test has made before. An empty
// namespace means all. The environment is that of the tests, or one that reaches it in another way.
func startController(t *testing.T, env testenv.Environment, namespace string, featureGates ...func(*plan.FeatureGates)) {
	t.Helper()
	on := plan.FeatureGates{EnvFromMetadata: true, Resize: true, StartOrdinal: true, PodIndexLabel: true, AutoDeletePVC: true}
	for _, change := range featureGates {
		change(&on)
	}
	env.Need(t)
	detector := &fastclient.Detector{}
	t.Cleanup(func() { detector.Check(t) })
	w := statefulset.Workload(on)
	mgr := env.Manager(t, func(o *manager.Options) { o.Cache = w.CacheOptions(namespace) })
	require.NoError(t, w.SetUp(t.Context(), mgr, pass.Settings{
		UserAgent: userAgent, Reader: fastclient.Options{Detector: detector}, Namespace: namespace,
	}))
	env.Start(t, mgr)
}
