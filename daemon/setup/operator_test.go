package setup

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/features"
	"github.com/flotilla-project/flotilla/core/manager"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

// An operator that is installed before its CRDs waits for them and then works, without a restart.
func TestOperatorWaitsForItsCRDs(t *testing.T) {
	c := serve(t, features.Defaults())
	operator := Operator()
	operator.Webhooks = nil
	options, err := manager.ReadOptions(operator, []string{
		"--metrics-addr=0", "--health-probe-addr=127.0.0.1:0", "--enable-pprof=false", "--leader-election-namespace=default",
		"--nodeimage-creation-delay=1s",
	}, func(string) string { return "" })
	require.NoError(t, err)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	require.NoError(t, c.Create(t.Context(), node))
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
	require.NoError(t, c.Status().Update(t.Context(), node))

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- manager.Run(ctx, operator, options, env.Config, logr.Discard()) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	require.Never(t, func() bool { return len(ended) > 0 }, time.Second, 50*time.Millisecond, "the operator ended")
	givenCRDs(t)

	require.EventuallyWithT(t, func(collect *assert.CollectT) {
		assert.NoError(collect, c.Get(t.Context(), client.ObjectKey{Name: node.Name}, &v1beta1.NodeImage{}))
	}, 30*time.Second, 50*time.Millisecond)
}
