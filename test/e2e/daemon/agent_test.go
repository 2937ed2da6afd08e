package daemon

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/story"
)

// Stories in this file stop agents, so they do not run in parallel with others.

func TestAnAgentThatNeverComesBackHoldsNoPod(t *testing.T) {
	set := newSet(world.Namespace(t), nil, newContainer("main", 8080))
	require.NoError(t, world.Client.Create(t.Context(), set))
	o := settles(t, set)
	r := newRequest("restart", o, "main")
	r.Spec.Strategy.UnreadyGracePeriodSeconds = new(int64(600))
	require.NoError(t, world.Client.Create(t.Context(), r))
	story.Reaches(t, world, o, "out of service", func(o *corev1.Pod) error {
		return story.Want(!story.IsReady(o), "conditions are %+v", o.Status.Conditions)
	})
	require.NoError(t, world.Client.Get(t.Context(), client.ObjectKeyFromObject(r), r))
	mark := r.Status.LastHeartbeatTime
	require.NotNil(t, mark)
	story.Reaches(t, world, r, "a sign of life in the grace", func(r *v1beta1.ContainerRecreateRequest) error {
		return story.Want(mark.Before(r.Status.LastHeartbeatTime), "the last one was at %s", r.Status.LastHeartbeatTime)
	})
	world.KeepAgentsAway(t, "daemon")
	completes(t, r)
	assert.Equal(t, "daemon has not responded for a long time", r.Status.Message)
	isReady(t, o)
	assert.Equal(t, corev1.ConditionTrue, story.PodCondition(o, contract.KruisePodReady).Status)
	assert.Zero(t, restarts(o)["main"])
}

func TestAnAgentThatIsKilledInAHookIsFollowedByAnother(t *testing.T) {
	main := newContainer("main", 8080)
	main.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 10}}}
	set := newSet(world.Namespace(t), nil, main)
	set.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(20))
	require.NoError(t, world.Client.Create(t.Context(), set))
	o := settles(t, set)
	r := newRequest("restart", o, "main")
	r.Spec.Strategy.UnreadyGracePeriodSeconds = new(int64(0))
	require.NoError(t, world.Client.Create(t.Context(), r))
	story.Reaches(t, world, r, "in its hook", func(r *v1beta1.ContainerRecreateRequest) error {
		states := r.Status.ContainerRecreateStates
		return story.Want(len(states) == 1 && states[0].ContainerID != "", "states are %+v", states)
	})
	world.KillAgents(t, "daemon")
	completes(t, r)
	assert.Equal(t, []v1beta1.RecreatePhase{v1beta1.RecreateSucceeded}, phases(r))
	isReady(t, o)
	assert.EqualValues(t, 1, restarts(o)["main"])
}
