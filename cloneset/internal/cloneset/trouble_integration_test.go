package cloneset_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/testing/simnodes"
	"github.com/flotilla-project/flotilla/core/workloads/conditions"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// What troubles a pod is told; while it crashes on, nothing is written.
func TestTroubleIsToldAndNotAtEachTurn(t *testing.T) {
	givenNodes(t, simnodes.Options{
		Bind: true, CrashBackoff: 100 * time.Millisecond,
		Images: map[string]simnodes.Image{"app:absent": {PullFails: true}, "app:crash": {Exits: true, ExitAfter: 50 * time.Millisecond, ExitCode: 1, NeverReady: true}},
	})
	c := env.Client(t)
	set := newSet(env.Namespace(t), 1, v1beta1.InPlaceIfPossible, 1)
	startController(t, set.Namespace)
	image("app:absent")(set)
	require.NoError(t, c.Create(t.Context(), set))
	says := func(trouble string) {
		eventually(t, func(collect *assert.CollectT) {
			require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(set), set))
			pods := env.Pods(t, set.Namespace)
			require.Len(collect, pods, 1)
			ready := conditions.Get(set.Status.Conditions, conditions.Ready)
			require.NotNil(collect, ready)
			assert.Equal(collect, "0 of 1 pods available, 1 of 1 updated; "+trouble+" ("+pods[0].Name+", container main)", ready.Message)
		})
	}
	says("ErrImagePull")
	edit(t, c, set, image("app:crash"))
	says("CrashLoopBackOff")
	crashed := func(times int32) {
		eventually(t, func(collect *assert.CollectT) {
			pods := env.Pods(t, set.Namespace)
			require.Len(collect, pods, 1)
			require.Len(collect, pods[0].Status.ContainerStatuses, 1)
			assert.GreaterOrEqual(collect, pods[0].Status.ContainerStatuses[0].RestartCount, times)
			assert.False(collect, podstate.HeldByUpdate(&pods[0]), "the update is over")
		})
	}
	crashed(2)
	says("CrashLoopBackOff")
	audit := env.Audit(t)
	crashed(5)
	assert.Empty(t, audit.Writes(t, userAgent))
	edit(t, c, set, image("app:1"))
	settles(t, c, set)
}
