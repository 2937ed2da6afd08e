package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/scenarios"
	"github.com/flotilla-project/flotilla/core/testing/simulate"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

// A manifest that was read from a built-in DaemonSet has the generation of the template, which nobody raises for another
// kind: it says nothing of pods whose revision is known.
func TestAnEditRollsOutThoughTheTemplateGenerationStays(t *testing.T) {
	annotated := func(s *v1beta1.DaemonSet) {
		s.Annotations = map[string]string{appsv1.DeprecatedTemplateGeneration: "7"}
	}
	seventh := gen.Label(templateGenerationLabel, "7")
	w := given(t, 1, annotated).old("n1", seventh)
	assert.Equal(t, []string{"delete n1"}, w.did())
	assert.Zero(t, w.status().UpdatedNumberScheduled)

	w = given(t, 1, annotated).updated("n1", seventh, gen.Revision("forgotten"))
	assert.Empty(t, w.did(), "of others it does")
	assert.EqualValues(t, 1, w.status().UpdatedNumberScheduled)
}

// startUpdate plays a set on four nodes, n of which may be without an available pod at once. After a minute its user wants
// the images, one each second.
func startUpdate(t testing.TB, o cluster.Options, n string, images ...string) (*simulate.World, operator.Planner) {
	t.Helper()
	w, p := play(t, o, 4, inPlace, maxUnavailable(n))
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

// startRestart is startUpdate for a user who wants containers restarted as they are.
func startRestart(t testing.TB, o cluster.Options, n string, _ ...string) (*simulate.World, operator.Planner) {
	t.Helper()
	w, p := play(t, o, 4, inPlace, maxUnavailable(n), readsConfig)
	w.NodeAgents()
	again := map[string]string{scenarios.ConfigAnnotation: "1", contract.RestartInPlaceAnnotation: "1"}
	timely(time.Second, told{"wants a restart", annotations(again)})(w)
	return w, p
}
