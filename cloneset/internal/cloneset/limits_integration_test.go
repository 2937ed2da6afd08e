package cloneset_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/flotilla-project/flotilla/core/testing/simnodes"
	"github.com/flotilla-project/flotilla/core/testing/testenv/operators"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/cloneset/setup"
)

// All controllers of OpenKruise shared 30 requests a second. An operator has no limit of its own, whatever
// its configuration came with: with one request a second these writes would take minutes.
func TestNoLimitOfTheClientSlowsAScaleOut(t *testing.T) {
	givenNodes(t, simnodes.Options{Bind: true})
	limited := env
	limited.Config = rest.CopyConfig(env.Config)
	limited.Config.QPS, limited.Config.Burst = 1, 1
	c, namespace := env.Client(t), env.Namespace(t)
	metrics.Registry = prometheus.NewRegistry() // an operator expects one of its own
	operators.Start(t, &limited, setup.Operator(), "--namespace="+namespace)
	set := newSet(namespace, 60, v1beta1.InPlaceIfPossible, 1)
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set)
}
