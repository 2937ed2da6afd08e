package plan

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/core/testing/simulate"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// Each test here is something that random worlds found.

// A pod that becomes available between a plan and its write was taken out of service as one that was not in it.
func TestPodsThatBecameAvailableMeanwhileAreSpared(t *testing.T) {
	for _, way := range []v1beta1.PodUpdatePolicy{v1beta1.ReCreate, v1beta1.InPlaceIfPossible} {
		w, p := play(t, simulate.Options{Seed: 1, Calm: true}, 2, policy(way), minReady(5), inOrder())
		operator := simulate.NewOperator(w, p, simulate.Faults{})
		for len(w.View(nil).Available("set-uid", 0)) < 1 {
			operator.Pass()
			w.Advance(time.Second)
		}
		edit(w, image("app:2"))
		steps, _ := p.Plan(w.View(nil), w.Now(), 1)
		require.Empty(t, w.View(nil).Available("set-uid", 5))
		w.Advance(5 * time.Second)
		require.Len(t, w.View(nil).Available("set-uid", 5), 1)
		operator.Run(steps)
		assert.Len(t, w.View(nil).Available("set-uid", 5), 1, "the story:\n%s", w.Story())
		assert.Empty(t, w.Violations())
		simulate.Settle(t, w, p, 500)
		arrived(t, w)
	}
}

// Conflicts in the way of several pods were tried a few times for each of them: five pods made a dozen requests
// in the first ten seconds, ten pods thirty.
func TestConflictsOfNewPodsAreQuiet(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		w, p := play(t, simulate.Options{Seed: seed}, 2)
		minutely(told{"wants more replicas", replicas([]int32{4, 5, 12}[seed%3])})(w)
		simulate.SettleUnder(t, w, p, simulate.Faults{Seed: seed, Refused: []simulate.Refused{{
			Write: "create Pod", Code: http.StatusConflict, From: 50 * time.Second, Until: 4 * time.Minute,
		}}}, 1000)
		arrived(t, w)
	}
}

// Pods serve and the status is quiet while a part of their updates is refused, or the revision after that.
func TestRefusedUpdatesLeaveStatusAndPodsAlone(t *testing.T) {
	simulate.CheckRefusedUpdates(t, func(t testing.TB, o simulate.Options, n string, images ...string) (*simulate.World, simulate.Planner) {
		t.Helper()
		w, p := play(t, o, 4, policy(v1beta1.InPlaceIfPossible), maxUnavailable(n))
		var edits []told
		for _, name := range images {
			edits = append(edits, wants(name))
		}
		timely(time.Second, edits...)(w)
		return w, p
	}, arrived)
}
