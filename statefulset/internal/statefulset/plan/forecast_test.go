package plan

import (
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/pods/inplace"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/scenarios"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// The warning about an edit says what the rollout does then.
func TestEditsDoWhatTheirWarningSays(t *testing.T) {
	t.Parallel()
	scenarios.CheckForecasts(t, 40, func(t testing.TB, seed uint64) scenarios.Forecast {
		t.Helper()
		rng := rand.New(rand.NewPCG(seed, 3))
		policies := []v1beta1.PodUpdatePolicy{v1beta1.InPlaceIfPossible, v1beta1.InPlaceIfPossible, v1beta1.ReCreate}
		w, p := play(t, cluster.Options{Seed: seed, Calm: true}, 4, readsConfig, policy(policies[rng.IntN(3)]), []setOption{inOrder(), minReady(0), unorderedBy(nil)}[rng.IntN(3)],
			maxUnavailable([]string{"1", "50%", "100%"}[rng.IntN(3)]), partition([]int32{0, 0, 2, 4, 9}[rng.IntN(5)]), paused(rng.IntN(6) == 0))
		return scenarios.Forecast{World: w, Planner: p, Edit: func(change func(*corev1.PodTemplateSpec)) []string {
			old := present(w).DeepCopy()
			edit(w, func(s *v1beta1.StatefulSet) { change(&s.Spec.Template) })
			return Forecast(old, present(w), inplace.Options{EnvFromMetadata: true, Resize: true}).Warnings()
		}}
	})
}
