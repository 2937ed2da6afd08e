package setup

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/flotilla-project/flotilla/core/gen"
	"github.com/flotilla-project/flotilla/core/manager"
	"github.com/flotilla-project/flotilla/core/testenv"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

var env testenv.Environment

func TestMain(m *testing.M) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	env.Run(m, testenv.Options{Scheme: scheme})
}

// An operator that is installed before its CRD waits for it and then works, without a restart.
func TestOperatorWaitsForItsCRD(t *testing.T) {
	env.Need(t)
	operator := Operator()
	operator.Webhooks = nil
	options, err := manager.ReadOptions(operator, []string{
		"--metrics-addr=0", "--health-probe-addr=127.0.0.1:0", "--enable-pprof=false", "--leader-election-namespace=default",
	}, func(string) string { return "" })
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- manager.Run(ctx, operator, options, env.Config, logr.Discard()) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})

	c := env.Client(t)
	require.Never(t, func() bool { return len(ended) > 0 }, time.Second, 50*time.Millisecond, "the operator ended")
	_, err = envtest.InstallCRDs(env.Config, envtest.CRDInstallOptions{Paths: []string{"../config/crd/clonesets.yaml"}})
	require.NoError(t, err)
	set := &v1beta1.CloneSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: env.Namespace(t)},
		Spec: v1beta1.CloneSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: gen.Template(gen.Label("app", "web"), gen.Image("main", "app:1")),
		},
	}
	require.NoError(t, c.Create(t.Context(), set))
	require.EventuallyWithT(t, func(collect *assert.CollectT) {
		require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(set), set))
		assert.Equal(collect, set.Generation, set.Status.ObservedGeneration)
	}, 30*time.Second, 50*time.Millisecond)
}
