package daemonset_test

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

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemonset/internal/daemonset"
	"github.com/flotilla-project/flotilla/daemonset/internal/daemonset/plan"
)

const (
	userAgent = "daemonset-manager/daemonset"
	nodeCount = 3
)

var env testenv.Environment

func TestMain(m *testing.M) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	env.Run(m, testenv.Options{CRDs: []string{"../../config/crd/daemonsets.yaml"}, Scheme: scheme})
}

// givenNodes runs the simulated nodes sim-0, sim-1 and sim-2 until the end of the test. There are no others: a test that
// adds some takes them away again.
func givenNodes(t *testing.T, options simnodes.Options) *simnodes.Nodes {
	t.Helper()
	env.Need(t)
	options.Nodes, options.LeasePeriod, options.Bind = nodeCount, simnodes.NoLeases, true
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	nodes, err := simnodes.Start(ctx, env.ConfigAs(t, simnodes.UserAgent), options)
	require.NoError(t, err)
	return nodes
}

// startController starts the controller in the namespace, where it finds whatever the test has made before. The
// environment is that of the tests, or one that reaches it in another way.
func startController(t *testing.T, env testenv.Environment, namespace string, featureGates ...func(*plan.FeatureGates)) {
	t.Helper()
	on := plan.FeatureGates{EnvFromMetadata: true, Resize: true}
	for _, change := range featureGates {
		change(&on)
	}
	env.Need(t)
	detector := &fastclient.Detector{}
	t.Cleanup(func() { detector.Check(t) })
	w := daemonset.Workload(on)
	mgr := env.Manager(t, func(o *manager.Options) { o.Cache = w.CacheOptions(namespace) })
	require.NoError(t, w.SetUp(t.Context(), mgr, pass.Settings{
		UserAgent: userAgent, Reader: fastclient.Options{Detector: detector}, Namespace: namespace,
	}))
	env.Start(t, mgr)
}
