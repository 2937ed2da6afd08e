package pass

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/execute"
)

// spendAtOnce leaves passes time for one write.
func (w *world) spendAtOnce(t *testing.T) {
	t.Helper()
	var err error
	w.controller.Executor, err = execute.New(execute.Options{
		Client: w.controller.Client, Live: w.controller.Live, Recorder: w, Metrics: prometheus.NewRegistry(), Controller: "test",
		Refusals: w.controller.Refusals, Clock: w.clock, Pass: time.Nanosecond,
	})
	require.NoError(t, err)
}

func (w *world) twoWrites() Pass {
	return w.pass(func(p *Pass) { p.Plan.Add(patch(&corev1.ConfigMap{ObjectMeta: metaOf("other")})) })
}

// A pass whose time is up writes the status and is gone on with at once.
func TestAPassWhoseTimeIsUpGoesOnAtOnce(t *testing.T) {
	w := givenWorld(t)
	w.spendAtOnce(t)
	result, err := w.controller.Run(t.Context(), w.twoWrites())
	require.NoError(t, err)
	assert.Equal(t, []string{"child", "status"}, w.writes)
	assert.Equal(t, goOn, result.RequeueAfter)
}

// The status of a spec that is no longer there is not sent: the pass over the new spec writes one.
func TestAPassOverAnEarlierSpecWritesNoStatus(t *testing.T) {
	w := givenWorld(t)
	var err error
	edited := false
	w.onWrite = func() { edited = true }
	w.controller.Executor, err = execute.New(execute.Options{
		Client: w.controller.Client, Live: w.controller.Live, Recorder: w, Metrics: prometheus.NewRegistry(), Controller: "test",
		Refusals: w.controller.Refusals, Clock: w.clock, Edited: func(client.Object) bool { return edited },
	})
	require.NoError(t, err)
	_, err = w.controller.Run(t.Context(), w.pass())
	require.NoError(t, err)
	assert.Equal(t, []string{"child"}, w.writes)
}
