package plan

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/scenarios"
	"github.com/flotilla-project/flotilla/core/testing/seeds"
	"github.com/flotilla-project/flotilla/core/testing/simulate"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// A disruption budget that lets no pod go and a set that has a surge pod to give waited for each other for ever: the set made
// surge pods only for what its own maxUnavailable does not let go.
func TestASurgePodSatisfiesABudgetThatLetsNoPodGo(t *testing.T) {
	byDefault := rolling(func(r *v1beta1.RollingUpdateCloneSetStrategy) { r.MaxUnavailable = nil })
	inPlace := policy(v1beta1.InPlaceIfPossible)
	for name, c := range map[string]struct {
		pods  int
		given []setOption
		names bool
	}{
		"a pod that is specified for deletion": {3, []setOption{maxSurge("1"), maxUnavailable("1")}, true},
		"though nothing may be unavailable":    {3, []setOption{maxSurge("1"), maxUnavailable("0")}, true},
		"by default, of five pods":             {5, []setOption{maxSurge("1"), byDefault}, true},
		"pods that are recreated":              {3, []setOption{maxSurge("1"), maxUnavailable("1")}, false},
		"pods that are updated in place":       {3, []setOption{maxSurge("1"), maxUnavailable("1"), inPlace}, false},
		"by default, of five pods in place":    {5, []setOption{maxSurge("1"), byDefault, inPlace}, false},
		"two at a time":                        {5, []setOption{maxSurge("2"), maxUnavailable("2"), inPlace}, false},
		"with minReadySeconds":                 {3, []setOption{maxSurge("1"), maxUnavailable("1"), inPlace, minReady(5)}, false},
		"a single pod":                         {1, []setOption{maxSurge("1"), maxUnavailable("1"), inPlace}, false},
		"pods that the partition lets go":      {4, []setOption{maxSurge("1"), maxUnavailable("1"), inPlace, partition("2")}, false},
		"a single pod that is marked":          {1, []setOption{maxSurge("1"), maxUnavailable("1")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			scenarios.CheckBudgetSurge(t, c.pods, cluster.Options{Seed: 1, Calm: true}, func(t testing.TB, o cluster.Options) (*simulate.World, operator.Planner) {
				t.Helper()
				w, p := play(t, o, int32(c.pods), c.given...)
				if c.names {
					timely(time.Minute, told{"names the oldest pod in podsToDelete", nameOne(w)})(w)
				} else {
					timely(time.Minute, wants("app:2"))(w)
				}
				return w, p
			}, arrived)
		})
	}
}

// The same for random sets and edits, in worlds that are not calm.
func TestSetsWithASurgeArriveWhateverTheBudget(t *testing.T) {
	t.Parallel()
	seeds.Each(t, 30, func(t *testing.T, seed uint64) {
		t.Helper()
		rng := rand.New(rand.NewPCG(seed, 5))
		pick := func(texts ...string) string { return texts[rng.IntN(len(texts))] }
		n := 1 + rng.IntN(5)
		given := []setOption{
			maxSurge(pick("1", "2", "50%")), maxUnavailable(pick("0", "1", "2", "50%")), minReady(int32(rng.IntN(2) * 5)),
			policy([]v1beta1.PodUpdatePolicy{v1beta1.ReCreate, v1beta1.InPlaceIfPossible}[rng.IntN(2)]), partition(pick("0", "0", "1")),
		}
		scenarios.CheckBudgetSurge(t, n, cluster.Options{Seed: seed}, func(t testing.TB, o cluster.Options) (*simulate.World, operator.Planner) {
			t.Helper()
			w, p := play(t, o, int32(n), given...)
			edits := []told{wants("app:2"), {"names the oldest pod in podsToDelete", nameOne(w)}, wants("app:3")}
			rng.Shuffle(len(edits), func(i, k int) { edits[i], edits[k] = edits[k], edits[i] })
			timely(time.Duration(1+rng.IntN(90))*time.Second, edits[:1+rng.IntN(3)]...)(w)
			return w, p
		}, arrived)
	})
}
