package scenarios

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/seeds"
	"github.com/flotilla-project/flotilla/core/testing/simulate"
)

// turns is the number of crashes of each container in CheckTurns.
const turns = 40

// CheckTurns plays n worlds in which image app:crash crashes repeatedly. start makes a workload with that image. Its
// status reports "CrashLoopBackOff" for a pod in a crash loop. CheckTurns requires that the status is not written again
// once each pod has crashed twice, however often containers restart after that.
func CheckTurns(t *testing.T, n int, start func(t testing.TB, o cluster.Options) (*simulate.World, operator.Planner)) {
	t.Helper()
	seeds.Each(t, n, func(t *testing.T, seed uint64) {
		t.Helper()
		w, p := start(t, cluster.Options{Seed: seed, Images: map[string]cluster.Image{"app:crash": {CrashLoop: true, Crashes: turns}}})
		restarts := map[string]int32{}
		w.OnEvent(func(w *simulate.World, e cluster.Event) {
			pod, isPod := e.Object.(*corev1.Pod)
			switch {
			case isPod && len(pod.Status.ContainerStatuses) > 0:
				restarts[pod.Name] = pod.Status.ContainerStatuses[0].RestartCount
			case isPod:
				restarts[pod.Name] = 0
			case e.Actor == cluster.OperatorActor && e.Subresource == "status" && least(restarts) >= 2:
				w.Violate("the status is written after %d crashes of each pod", least(restarts))
			}
		})
		simulate.Settle(t, w, p, sweepLimit)
		require.EqualValues(t, turns, least(restarts), "a pod has not crashed as often")
	})
}

// least returns the smallest count, or 0 if there is none.
func least(restarts map[string]int32) int32 {
	counts := slices.Sorted(maps.Values(restarts))
	if len(counts) == 0 {
		return 0
	}
	return counts[0]
}
