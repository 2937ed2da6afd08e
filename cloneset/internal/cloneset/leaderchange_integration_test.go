package cloneset_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/testing/simnodes"
	"github.com/flotilla-project/flotilla/core/testing/testenv/faults"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// A leader is cut off from its Lease in the middle of a batch. Its writes that are under way arrive as
// late as they can, with nobody there to hear the answers, and the watch of the next leader is late
// too. No pod is made twice, none too many is out of service, and the rollout ends as if nothing had
// happened.
func TestALeaderLosesItsLeaseInTheMiddleOfABatch(t *testing.T) {
	const wanted, maxUnavailable = 6, 2
	givenNodes(t, simnodes.Options{Bind: true})
	c := env.Client(t)
	set := newSet(env.Namespace(t), wanted, v1beta1.InPlaceIfPossible, maxUnavailable)
	for _, rollout := range []struct {
		name  string
		ready int
		begin func()
	}{
		{"scale-up", 0, func() { require.NoError(t, c.Create(t.Context(), set)) }},
		{"in place", wanted - maxUnavailable, func() { edit(t, c, set, image("app:2")) }},
		{"recreation", wanted - maxUnavailable, func() { edit(t, c, set, argument("new")) }},
	} {
		t.Run(rollout.name, func(t *testing.T) {
			history := faults.Record(t, env, set.Namespace)
			landed := newReplicas(t, set.Namespace).ChangeLeader(t, 2, rollout.begin)
			settles(t, c, set)
			assert.Positive(t, landed(), "no write was under way")
			history.Replay(t, func(pods []*corev1.Pod) {
				active, available := countPods(pods)
				assert.LessOrEqual(t, active, wanted)
				assert.GreaterOrEqual(t, available, rollout.ready)
			})
			assertWanted(t, set)
			assertCalm(t, c, set)
		})
	}
}
