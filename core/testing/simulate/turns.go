package simulate

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/testing/seeds"
)

// turns is how often the containers of CheckTurns crash.
const turns = 40

// CheckTurns plays n worlds in which image app:crash crashes again and again. start makes a workload of that image,
// whose status says of a pod in a crash loop "CrashLoopBackOff". Once each pod has crashed twice, the status says
// so and is written no more, however often the pods start, run and end.
func CheckTurns(t *testing.T, n int, start func(t testing.TB, o Options) (*World, Planner)) {
	t.Helper()
	seeds.Each(t, n, func(t *testing.T, seed uint64) {
		t.Helper()
		w, p := start(t, Options{Seed: seed, Images: map[string]Image{"app:crash": {CrashLoop: true, Crashes: turns}}})
		restarts := map[string]int32{}
		w.OnEvent(func(w *World, e Event) {
			pod, isPod := e.Object.(*corev1.Pod)
			switch {
			case isPod && len(pod.Status.ContainerStatuses) > 0:
				restarts[pod.Name] = pod.Status.ContainerStatuses[0].RestartCount
			case isPod:
				restarts[pod.Name] = 0
			case e.Actor == OperatorActor && e.Subresource == "status" && least(restarts) >= 2:
				w.Violate("the status is written after %d crashes of each pod", least(restarts))
			}
		})
		Settle(t, w, p, sweepLimit)
		require.EqualValues(t, turns, least(restarts), "a pod has not crashed as often")
	})
}

// least returns the smallest count, 0 where none is known.
func least(restarts map[string]int32) int32 {
	counts := slices.Sorted(maps.Values(restarts))
	if len(counts) == 0 {
		return 0
	}
	return counts[0]
}
