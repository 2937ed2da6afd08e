package plan

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/retries"
	"github.com/flotilla-project/flotilla/core/testing/scenarios"
	"github.com/flotilla-project/flotilla/core/testing/simulate"
	"github.com/flotilla-project/flotilla/core/workloads/conditions"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// Each test here is something that random worlds found.

// A pod that becomes available between a plan and its write was taken out of service as one that was not in it.
func TestPodsThatBecameAvailableMeanwhileAreSpared(t *testing.T) {
	for _, way := range []v1beta1.PodUpdatePolicy{v1beta1.ReCreate, v1beta1.InPlaceIfPossible} {
		w, p := play(t, cluster.Options{Seed: 1, Calm: true}, 2, policy(way), minReady(5), inOrder())
		player := simulate.NewOperator(w, p, simulate.Faults{})
		for len(w.View(nil).Available("set-uid", 0)) < 1 {
			player.Pass()
			w.Advance(time.Second)
		}
		edit(w, image("app:2"))
		steps, _ := p.Plan(&operator.View{View: w.View(nil)}, w.Now(), 1)
		require.Empty(t, w.View(nil).Available("set-uid", 5))
		w.Advance(5 * time.Second)
		require.Len(t, w.View(nil).Available("set-uid", 5), 1)
		player.Run(steps)
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
		w, p := play(t, cluster.Options{Seed: seed}, 2)
		minutely(told{"wants more replicas", replicas([]int32{4, 5, 12}[seed%3])})(w)
		simulate.SettleUnder(t, w, p, simulate.Faults{Seed: seed, Refused: []retries.Refused{{
			Write: "create Pod", Code: http.StatusConflict, From: 50 * time.Second, Until: 4 * time.Minute,
		}}}, 1000)
		arrived(t, w)
	}
}

// startUpdate plays a set of four pods, n of which may be out of service at once. After a minute its user wants the images,
// one each second.
func startUpdate(t testing.TB, o cluster.Options, n string, images ...string) (*simulate.World, operator.Planner) {
	t.Helper()
	w, p := play(t, o, 4, policy(v1beta1.InPlaceIfPossible), maxUnavailable(n))
	var edits []told
	for _, name := range images {
		edits = append(edits, wants(name))
	}
	timely(time.Second, edits...)(w)
	return w, p
}

// Pods serve and the status is quiet while a part of their updates is refused, or the revision after that.
func TestRefusedUpdatesLeaveStatusAndPodsAlone(t *testing.T) {
	scenarios.CheckRefusedUpdates(t, startUpdate, arrived)
}

// What a budget frees is used soon: what it had refused was sent as a dry run first, which it refused, too, and waited for
// half a minute each time.
func TestUpdatesKeepToABudgetAndGoOnWhenItFrees(t *testing.T) {
	conditionsOf := func(w *simulate.World) []workload.Condition { return present(w).Status.Conditions }
	t.Run("an image", func(t *testing.T) { scenarios.CheckBudget(t, startUpdate, conditionsOf, arrived) })
	t.Run("a restart in place", func(t *testing.T) { scenarios.CheckBudget(t, startRestart, conditionsOf, arrived) })
}

// The words of a budget change with each try, and with the pod that is tried: there was an event of each.
func TestABudgetThatRefusesTellsOfItself(t *testing.T) {
	s := given(t, 2, policy(v1beta1.InPlaceIfPossible)).old(at(0, 1)).snapshot()
	update := action.Purpose{Verb: action.UpdateInPlace, Kind: "pod", Reason: "Update"}
	s.Refusals = action.Refusals{update: {Probing: true, Until: now.Add(time.Minute), Told: action.Told{Message: "full", ByBudget: true}}}
	todo := Compute(s)
	assert.Empty(t, todo.Notices)
	progressing := conditions.Get(Status(s, todo, action.Failures{}.WithDeferred(todo.Deferred)).Conditions, v1beta1.StatefulSetProgressing)
	require.NotNil(t, progressing)
	assert.Equal(t, "BlockedByBudget", progressing.Reason)
	assert.Equal(t, "BlockedByBudget: full", progressing.Message)
}

// startRestart is startUpdate for a user who wants containers restarted as they are.
func startRestart(t testing.TB, o cluster.Options, n string, _ ...string) (*simulate.World, operator.Planner) {
	t.Helper()
	w, p := play(t, o, 4, policy(v1beta1.InPlaceOnly), maxUnavailable(n), readsConfig)
	w.NodeAgents()
	again := map[string]string{scenarios.ConfigAnnotation: "1", contract.RestartInPlaceAnnotation: "1"}
	timely(time.Second, told{"wants a restart", annotations(again)})(w)
	return w, p
}
