package simulate_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/simulate"
)

func TestHooksAreAnsweredAfterAWhile(t *testing.T) {
	hooks := &workload.Lifecycle{InPlaceUpdate: simulate.Hook()}
	for name, c := range map[string]struct {
		state string
		had   string
		want  string
	}{
		"released before the update":   {contract.LifecyclePreparingUpdate, simulate.HookTaken, ""},
		"released before the deletion": {contract.LifecyclePreparingDelete, simulate.HookTaken, ""},
		"taken after the update":       {contract.LifecycleUpdated, "", simulate.HookTaken},
		"left alone in service":        {contract.LifecycleNormal, simulate.HookTaken, simulate.HookTaken},
	} {
		t.Run(name, func(t *testing.T) {
			w := simulate.New(cluster.Options{Seed: 1, Calm: true})
			w.AnswerHooks(3*time.Second, func() *workload.Lifecycle { return hooks })
			pod := gen.Pod("web-1", gen.Label("app", "web"))
			if c.had != "" {
				pod.Labels[simulate.HookLabel] = c.had
			}
			added := w.Add(pod)
			_, err := w.Patch(cluster.OperatorActor, added, action.Patch{Body: body{"metadata": body{"labels": body{contract.LifecycleStateLabel: c.state}}}})
			require.NoError(t, err)
			w.Advance(2 * time.Second)
			assert.Equal(t, c.had, w.Latest(added).GetLabels()[simulate.HookLabel])
			w.Advance(2 * time.Second)
			assert.Equal(t, c.want, w.Latest(added).GetLabels()[simulate.HookLabel])
		})
	}
}

// Where somebody took the labels off a pod and puts them back, its hook is answered then.
func TestHooksAreAnsweredWhoeverBringsThemBack(t *testing.T) {
	w := simulate.New(cluster.Options{Seed: 1, Calm: true})
	pod := w.Add(gen.Pod("web-1", gen.Lifecycle(contract.LifecyclePreparingDelete), gen.Label(simulate.HookLabel, simulate.HookTaken)))
	w.AnswerHooks(3*time.Second, func() *workload.Lifecycle { return &workload.Lifecycle{PreDelete: simulate.Hook()} })
	simulate.StripsLabels(20*time.Second)(w, rand.New(rand.NewPCG(1, 1)))
	require.Empty(t, w.Latest(pod).GetLabels())
	w.Advance(21 * time.Second)
	assert.Equal(t, simulate.HookTaken, w.Latest(pod).GetLabels()[simulate.HookLabel])
	w.Advance(3 * time.Second)
	assert.Equal(t, contract.LifecyclePreparingDelete, w.Latest(pod).GetLabels()[contract.LifecycleStateLabel])
	assert.NotContains(t, w.Latest(pod).GetLabels(), simulate.HookLabel, "the story:\n%s", w.Story())
}
