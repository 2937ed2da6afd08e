package lifecycle

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/testing/seeds"
)

// TestEveryStateHasAWayOut plays random wishes, hooks and users: whatever the state, a wish that lasts
// is fulfilled once the user releases and takes hooks as asked, and no key is left behind.
func TestEveryStateHasAWayOut(t *testing.T) {
	states := []string{"", normal, preparingNormal, preparingUpdate, updating, updated, preparingDelete}
	seeds.Each(t, 3000, func(t *testing.T, seed uint64) {
		t.Helper()
		random := rand.New(rand.NewPCG(seed, 0))
		l := randomLifecycle(random)
		pod := podIn(states[random.IntN(len(states))])
		for range random.IntN(12) {
			c := action.NewPodChange(pod, now)
			if random.IntN(2) == 0 {
				hookTaken(pod)
			} else {
				delete(pod.Labels, "hook")
			}
			randomStep(random, c, l)
			requireKeysBelongToState(t, c)
			pod = after(c)
			if random.IntN(8) == 0 {
				l = randomLifecycle(random)
			}
		}
		requireNormalIsReachable(t, pod.DeepCopy(), l)
		requireUpdateIsReachable(t, pod.DeepCopy(), l)
		delete(pod.Labels, "hook")
		require.True(t, BeginDelete(action.NewPodChange(pod, now), l), "delete from %s", State(pod))
	})
}

func randomLifecycle(random *rand.Rand) *workload.Lifecycle {
	hook := func() *workload.LifecycleHook {
		switch random.IntN(3) {
		case 0:
			return nil
		case 1:
			return &workload.LifecycleHook{MarkPodNotReady: random.IntN(2) == 0}
		}
		return labelHook(random.IntN(2) == 0)
	}
	if random.IntN(4) == 0 {
		return nil
	}
	return &workload.Lifecycle{PreDelete: hook(), InPlaceUpdate: hook(), PreNormal: hook()}
}

func randomStep(random *rand.Rand, c *action.PodChange, l *workload.Lifecycle) {
	switch random.IntN(5) {
	case 0:
		BeginUpdate(c, l)
	case 1:
		CancelUpdate(c, l)
	case 2:
		BeginDelete(c, l)
	case 3:
		CancelDelete(c, l)
	}
	if random.IntN(2) == 0 {
		Refresh(c, l, random.IntN(2) == 0)
	}
}

func requireKeysBelongToState(t *testing.T, c *action.PodChange) {
	t.Helper()
	state := stateAfter(c)
	for _, entry := range notReadyKeys(c) {
		switch entry.Key {
		case contract.PreUpdateHookKey:
			require.Contains(t, []string{preparingUpdate, updating, preparingDelete}, state)
		case contract.PreDeleteHookKey:
			require.Equal(t, preparingDelete, state)
		}
	}
}

// requireNormalIsReachable wants the pod kept and at its revision: the user takes all hooks.
func requireNormalIsReachable(t *testing.T, pod *corev1.Pod, l *workload.Lifecycle) {
	t.Helper()
	from := State(pod)
	if from == preparingDelete && marksNotReady(l) {
		return // the way out is the deletion
	}
	hookTaken(pod)
	for range 4 {
		c := action.NewPodChange(pod, now)
		CancelDelete(c, l)
		CancelUpdate(c, l)
		Refresh(c, l, true)
		pod = after(c)
	}
	require.Equal(t, normal, State(pod), "from %s", from)
	require.Empty(t, notReadyKeys(action.NewPodChange(pod, now)), "from %s", from)
}

// requireUpdateIsReachable wants the pod updated: the user releases the hook.
func requireUpdateIsReachable(t *testing.T, pod *corev1.Pod, l *workload.Lifecycle) {
	t.Helper()
	from := State(pod)
	if from == preparingDelete && marksNotReady(l) {
		return
	}
	for range 4 {
		delete(pod.Labels, "hook")
		c := action.NewPodChange(pod, now)
		CancelDelete(c, l)
		if BeginUpdate(c, l) {
			require.Equal(t, updating, stateAfter(c))
			return
		}
		pod = after(c)
	}
	require.Fail(t, "never updated", "from %s", from)
}
