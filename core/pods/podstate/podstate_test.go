package podstate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/testing/gen"
)

// second is a moment some seconds after the epoch of all pods.
func second(n int) time.Time { return gen.Epoch().Add(time.Duration(n) * time.Second) }

func TestOfReadsMetadata(t *testing.T) {
	pod := gen.Pod("web-1", gen.Revision("web-abc"), gen.SpecifiedDelete(), gen.Lifecycle(contract.LifecycleUpdating), gen.DeletionCost("7"))
	before := pod.DeepCopy()
	state := podstate.Of(pod, second(0), 0)
	assert.Same(t, pod, state.Pod)
	assert.Equal(t, "abc", state.Revision)
	assert.Equal(t, contract.LifecycleUpdating, state.Lifecycle)
	assert.True(t, state.SpecifiedDelete)
	assert.Equal(t, int32(7), state.DeletionCost)
	assert.Equal(t, before, pod, "the pod was changed")

	bare := podstate.Of(gen.Pod("web-1"), second(0), 0)
	assert.Empty(t, bare.Revision)
	assert.Equal(t, contract.LifecycleNormal, bare.Lifecycle)
	assert.False(t, bare.SpecifiedDelete)
}

func TestSpecifiedDeleteCountsByPresence(t *testing.T) {
	pod := gen.Pod("web-1", gen.Label(contract.SpecifiedDeleteLabel, "false"))
	assert.True(t, podstate.Of(pod, second(0), 0).SpecifiedDelete)
}

func TestActivePods(t *testing.T) {
	cases := []struct {
		name                string
		options             []gen.PodOption
		active, terminating bool
	}{
		{"pending", nil, true, false},
		{"running", []gen.PodOption{gen.Ready(second(0))}, true, false},
		{"failed", []gen.PodOption{gen.Phase(corev1.PodFailed)}, false, false},
		{"succeeded", []gen.PodOption{gen.Phase(corev1.PodSucceeded)}, false, false},
		{"terminating", []gen.PodOption{gen.Ready(second(0)), gen.Terminating()}, false, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			state := podstate.Of(gen.Pod("web-1", c.options...), second(0), 0)
			assert.Equal(t, c.active, state.Active)
			assert.Equal(t, c.terminating, state.Terminating)
		})
	}
}

func TestReadiness(t *testing.T) {
	ready := gen.Ready(second(10))
	held := func(status corev1.ConditionStatus) gen.PodOption {
		return gen.Condition(contract.InPlaceUpdateReady, status, second(20))
	}
	cases := []struct {
		name            string
		options         []gen.PodOption
		minReadySeconds int32
		now             time.Time
		ready           bool
		available       bool
		availableIn     time.Duration
	}{
		{"without condition", nil, 0, second(10), false, false, 0},
		{"not ready", []gen.PodOption{gen.NotReady(second(10))}, 0, second(99), false, false, 0},
		{"ready but not running", []gen.PodOption{ready, gen.Phase(corev1.PodFailed)}, 0, second(99), false, false, 0},
		{"ready of unknown status", []gen.PodOption{ready, gen.Condition(corev1.PodReady, corev1.ConditionUnknown, second(10))}, 0, second(99), false, false, 0},
		{"ready at once", []gen.PodOption{ready}, 0, second(10), true, true, 0},
		{"not ready for long enough", []gen.PodOption{ready}, 30, second(15), true, false, 25 * time.Second},
		{"a moment before", []gen.PodOption{ready}, 30, second(40).Add(-1), true, false, 1},
		{"ready for exactly long enough", []gen.PodOption{ready}, 30, second(40), true, true, 0},
		{"ready for longer", []gen.PodOption{ready}, 30, second(99), true, true, 0},
		{"a clock ahead of ours", []gen.PodOption{ready}, 30, second(5), true, false, 35 * time.Second},
		{"since an unknown moment", []gen.PodOption{gen.Ready(time.Time{})}, 30, second(99), true, false, 30 * time.Second},
		{"since an unknown moment that does not matter", []gen.PodOption{gen.Ready(time.Time{})}, 0, second(99), true, true, 0},
		{"a negative period", []gen.PodOption{gen.Ready(time.Time{})}, -5, second(99), true, true, 0},
		{"held by an update", []gen.PodOption{ready, held(corev1.ConditionFalse)}, 0, second(99), false, false, 0},
		{"held by an update of unknown status", []gen.PodOption{ready, held(corev1.ConditionUnknown)}, 0, second(99), false, false, 0},
		{"released by the update", []gen.PodOption{ready, held(corev1.ConditionTrue)}, 0, second(99), true, true, 0},
		{"normal", []gen.PodOption{ready, gen.Lifecycle(contract.LifecycleNormal)}, 0, second(99), true, true, 0},
		{"preparing to be normal", []gen.PodOption{ready, gen.Lifecycle(contract.LifecyclePreparingNormal)}, 0, second(99), true, false, 0},
		{"updated, where time alone does not help", []gen.PodOption{ready, gen.Lifecycle(contract.LifecycleUpdated)}, 30, second(15), true, false, 0},
		{"preparing to be deleted", []gen.PodOption{ready, gen.Lifecycle(contract.LifecyclePreparingDelete)}, 0, second(99), true, false, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			state := podstate.Of(gen.Pod("web-1", c.options...), c.now, c.minReadySeconds)
			assert.Equal(t, c.ready, state.Ready, "ready")
			assert.Equal(t, c.available, state.Available, "available")
			assert.Equal(t, c.availableIn, state.AvailableIn, "available in")
		})
	}
}

// Waiting for AvailableIn makes the pod available, and nothing less does.
func TestAvailableInIsExact(t *testing.T) {
	pod := gen.Pod("web-1", gen.Ready(second(10)))
	for now := range 60 {
		state := podstate.Of(pod, second(now), 30)
		assert.Equal(t, state.Available, state.AvailableIn == 0)
		assert.True(t, podstate.Of(pod, second(now).Add(state.AvailableIn), 30).Available)
		if !state.Available {
			assert.False(t, podstate.Of(pod, second(now).Add(state.AvailableIn-1), 30).Available)
		}
	}
}

func TestReadySince(t *testing.T) {
	assert.Equal(t, second(10), podstate.Of(gen.Pod("web-1", gen.Ready(second(10))), second(20), 0).ReadySince)
	assert.True(t, podstate.Of(gen.Pod("web-1"), second(20), 0).ReadySince.IsZero())
}

func TestRestartsAreThoseOfTheWorstContainer(t *testing.T) {
	pod := gen.Pod("web-1", gen.Image("side", "log:1"), gen.Image("third", "x:1"), gen.Restarts(2))
	pod.Status.ContainerStatuses[1].RestartCount = 5
	assert.Equal(t, int32(5), podstate.Of(pod, second(0), 0).Restarts)
	assert.Zero(t, podstate.Of(gen.Pod("web-1"), second(0), 0).Restarts)
}

func TestDeletionCost(t *testing.T) {
	for text, want := range map[string]int32{
		"5": 5, "-5": -5, "0": 0, "2147483647": 2147483647, "-2147483648": -2147483648,
		"": 0, "+5": 0, "05": 0, "-05": 0, "-0": 0, "5.0": 0, " 5": 0, "high": 0, "2147483648": 0,
	} {
		assert.Equal(t, want, podstate.Of(gen.Pod("web-1", gen.DeletionCost(text)), second(0), 0).DeletionCost, text)
	}
}

func TestReadyPodsOfTheUpdateRevisionCount(t *testing.T) {
	ready, not := podstate.Of(gen.Pod("web-1", gen.Ready(second(0))), second(0), 0), podstate.Of(gen.Pod("web-2"), second(0), 0)
	pods := []podstate.State{ready, not, ready, ready}
	assert.Equal(t, int32(2), podstate.CountReady(len(pods), func(i int) (*podstate.State, bool) { return &pods[i], i < 3 }))
}

func TestShortHash(t *testing.T) {
	for revision, want := range map[string]string{"my-web-abc": "abc", "abc": "abc", "": "", "web-": ""} {
		assert.Equal(t, want, podstate.ShortHash(revision), revision)
	}
}

func TestConditionsAndGates(t *testing.T) {
	pod := gen.Pod("web-1", gen.Ready(second(1)), gen.ReadinessGate(contract.InPlaceUpdateReady))
	assert.Equal(t, corev1.ConditionTrue, podstate.Condition(pod, corev1.PodReady).Status)
	assert.Nil(t, podstate.Condition(pod, contract.KruisePodReady))
	assert.True(t, podstate.HasReadinessGate(pod, contract.InPlaceUpdateReady))
	assert.False(t, podstate.HasReadinessGate(pod, contract.KruisePodReady))
	assert.False(t, podstate.HeldByUpdate(pod), "the condition is absent")
}
