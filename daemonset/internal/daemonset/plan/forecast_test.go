package plan

import (
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/pods/inplace"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/scenarios"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

// The warning about an edit says what the rollout does then.
func TestEditsDoWhatTheirWarningSays(t *testing.T) {
	t.Parallel()
	scenarios.CheckForecasts(t, 40, func(t testing.TB, seed uint64) scenarios.Forecast {
		t.Helper()
		rng := rand.New(rand.NewPCG(seed, 3))
		w, p := play(t, cluster.Options{Seed: seed, Calm: true}, 4, readsConfig,
			[]setOption{inPlace, inPlace, maxUnavailable("2"), maxSurge("1"), onDeletion}[rng.IntN(5)], partition([]string{"0", "0", "1", "50%", "4"}[rng.IntN(5)]),
			rolling(func(r *v1beta1.RollingUpdateDaemonSet) { r.Paused = new(rng.IntN(6) == 0) }))
		return scenarios.Forecast{World: w, Planner: p, Edit: func(change func(*corev1.PodTemplateSpec)) []string {
			old := present(w).DeepCopy()
			edit(w, func(s *v1beta1.DaemonSet) { change(&s.Spec.Template) })
			return Forecast(old, present(w), inplace.Options{EnvFromMetadata: true, Resize: true}).Warnings()
		}}
	})
}

func onDeletion(s *v1beta1.DaemonSet) { s.Spec.UpdateStrategy.Type = v1beta1.OnDeleteStrategyType }
