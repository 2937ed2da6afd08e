package daemon

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/story"
)

// One container of three is recreated, once, and nothing else about the pod changes.
func TestOnlyTheNamedContainerIsRecreated(t *testing.T) {
	t.Parallel()
	o := givenPod(t, newContainer("a", 8080), newContainer("b", 8081), newContainer("c", 8082))
	before := o.DeepCopy()
	r := newRequest("restart", o, "b")
	require.NoError(t, world.Client.Create(t.Context(), r))
	completes(t, r)
	isReady(t, o)
	assert.Equal(t, map[string]int32{"a": 0, "b": 1, "c": 0}, restarts(o))
	assert.Equal(t, story.Identities([]corev1.Pod{*before}), story.Identities([]corev1.Pod{*o}))
	for _, name := range []string{"a", "c"} {
		assert.Equal(t, container(t, before, name).ContainerID, container(t, o, name).ContainerID)
	}
	assert.NotEqual(t, container(t, before, "b").ContainerID, container(t, o, "b").ContainerID)
	require.Len(t, r.Status.ContainerRecreateStates, 1)
	state := r.Status.ContainerRecreateStates[0]
	assert.Equal(t, "b", state.Name)
	assert.Equal(t, v1beta1.RecreateSucceeded, state.Phase)
	assert.True(t, state.IsKilled)
	assert.NotNil(t, r.Status.CompletionTime)
	assert.Equal(t, o.Spec.NodeName, r.Labels[v1beta1.NodeNameLabel])
	story.Reaches(t, world, r, "no longer active", func(r *v1beta1.ContainerRecreateRequest) error {
		return story.Want(r.Labels[v1beta1.ActiveLabel] == "", "labels are %v", r.Labels)
	})
}

func TestANativeSidecarIsRecreated(t *testing.T) {
	t.Parallel()
	o := newPod(world.Namespace(t), newContainer("main", 8080))
	proxy := newContainer("proxy", 8081)
	proxy.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	o.Spec.InitContainers = []corev1.Container{proxy}
	require.NoError(t, world.Client.Create(t.Context(), o))
	isReady(t, o)
	r := newRequest("restart", o, "proxy")
	require.NoError(t, world.Client.Create(t.Context(), r))
	completes(t, r)
	assert.Equal(t, []v1beta1.RecreatePhase{v1beta1.RecreateSucceeded}, phases(r))
	isReady(t, o)
	assert.EqualValues(t, 1, o.Status.InitContainerStatuses[0].RestartCount)
	assert.Equal(t, map[string]int32{"main": 0}, restarts(o))
}

func TestOrderedRecreateWaitsForEachContainer(t *testing.T) {
	t.Parallel()
	o := givenPod(t, newContainer("first", 8080, "-ready-after", "3s"), newContainer("second", 8081))
	r := newRequest("restart", o, "first", "second")
	r.Spec.Strategy.OrderedRecreate = true
	require.NoError(t, world.Client.Create(t.Context(), r))
	completes(t, r)
	isReady(t, o)
	assert.Equal(t, map[string]int32{"first": 1, "second": 1}, restarts(o))
	assert.Equal(t, []v1beta1.RecreatePhase{v1beta1.RecreateSucceeded, v1beta1.RecreateSucceeded}, phases(r))
	first, second := container(t, o, "first").State.Running.StartedAt, container(t, o, "second").LastTerminationState.Terminated.FinishedAt
	assert.GreaterOrEqual(t, second.Sub(first.Time), 2*time.Second, "times of the runtime are in whole seconds")
}

// A container that restarts by itself while the request waits is not stopped again, unless asked for.
func TestForceRecreate(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		force    bool
		restarts int32
	}{"without": {false, 1}, "with force": {true, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := givenPod(t, newContainer("main", 8080))
			r := newRequest("restart", o, "main")
			r.Spec.Strategy.ForceRecreate = want.force
			r.Spec.Strategy.UnreadyGracePeriodSeconds = new(int64(15))
			require.NoError(t, world.Client.Create(t.Context(), r))
			story.Reaches(t, world, r, "waiting", func(r *v1beta1.ContainerRecreateRequest) error {
				return story.Want(r.Status.Phase == v1beta1.RecreateRecreating, "phase is %q", r.Status.Phase)
			})
			_, _ = world.Ask(t, o, "/crash") // the end of the process may come before the answer
			story.Reaches(t, world, o, "started again", func(o *corev1.Pod) error {
				return story.Want(restarts(o)["main"] == 1 && story.IsReady(o), "containers are %+v", o.Status.ContainerStatuses)
			})
			completes(t, r)
			isReady(t, o)
			assert.Equal(t, want.restarts, restarts(o)["main"])
			assert.Equal(t, []v1beta1.RecreatePhase{v1beta1.RecreateSucceeded}, phases(r))
		})
	}
}

// A deadline ends the request, but not a stop whose hook has begun.
func TestADeadlineEndsTheRequest(t *testing.T) {
	t.Parallel()
	slow := newContainer("slow", 8080)
	slow.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"/app/app", "sleep", "16s"}}}}
	o := givenPod(t, slow, newContainer("other", 8081))
	r := newRequest("restart", o, "slow", "other")
	r.Spec.Strategy.TerminationGracePeriodSeconds = new(int64(20))
	r.Spec.ActiveDeadlineSeconds = new(int64(3))
	require.NoError(t, world.Client.Create(t.Context(), r))
	completes(t, r)
	assert.Equal(t, "recreating has exceeded the activeDeadlineSeconds", r.Status.Message)
	assert.Less(t, r.Status.CompletionTime.Sub(r.CreationTimestamp.Time), 16*time.Second)
	assert.Equal(t, []v1beta1.RecreatePhase{v1beta1.RecreatePending, v1beta1.RecreatePending}, phases(r))

	story.Reaches(t, world, o, "started again", func(o *corev1.Pod) error {
		return story.Want(restarts(o)["slow"] == 1 && story.IsReady(o), "containers are %+v", o.Status.ContainerStatuses)
	})
	assert.Zero(t, restarts(o)["other"], "no stop begins after the deadline")
	require.NoError(t, world.Client.Get(t.Context(), client.ObjectKeyFromObject(r), r))
	assert.Equal(t, []v1beta1.RecreatePhase{v1beta1.RecreateRecreating, v1beta1.RecreatePending}, phases(r))
	assert.True(t, r.Status.ContainerRecreateStates[0].IsKilled)
	assert.Empty(t, r.Status.ContainerRecreateStates[0].Message)
}

func TestPreStopComesBeforeTheStop(t *testing.T) {
	t.Parallel()
	for name, hook := range map[string]corev1.LifecycleHandler{
		"exec":  {Exec: &corev1.ExecAction{Command: []string{"/app/app", "sleep", "4s"}}},
		"sleep": {Sleep: &corev1.SleepAction{Seconds: 4}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			main := newContainer("main", 8080)
			main.Lifecycle = &corev1.Lifecycle{PreStop: &hook}
			o := givenPod(t, main)
			r := newRequest("restart", o, "main")
			r.Spec.Strategy.TerminationGracePeriodSeconds = new(int64(30))
			require.NoError(t, world.Client.Create(t.Context(), r))
			created := r.CreationTimestamp
			completes(t, r)
			isReady(t, o)
			assert.GreaterOrEqual(t, container(t, o, "main").State.Running.StartedAt.Sub(created.Time), 4*time.Second)
			assert.EqualValues(t, 1, restarts(o)["main"])
		})
	}
}

// The grace period of the request applies, not that of the pod.
func TestADeafContainerIsEndedAfterTheGrace(t *testing.T) {
	t.Parallel()
	o := newPod(world.Namespace(t), newContainer("main", 8080, "-deaf"))
	o.Spec.TerminationGracePeriodSeconds = new(int64(60))
	require.NoError(t, world.Client.Create(t.Context(), o))
	isReady(t, o)
	r := newRequest("restart", o, "main")
	r.Spec.Strategy.TerminationGracePeriodSeconds = new(int64(3))
	require.NoError(t, world.Client.Create(t.Context(), r))
	completes(t, r)
	isReady(t, o)
	stopped := container(t, o, "main").LastTerminationState.Terminated.FinishedAt
	assert.GreaterOrEqual(t, stopped.Sub(r.CreationTimestamp.Time), 2*time.Second)
	assert.Less(t, stopped.Sub(r.CreationTimestamp.Time), 60*time.Second)
	require.NoError(t, world.Client.Delete(t.Context(), o, client.GracePeriodSeconds(0)))
}

func TestRequestsForOnePodAreServedInTurn(t *testing.T) {
	t.Parallel()
	o := givenPod(t, newContainer("a", 8080), newContainer("b", 8081))
	one, two := newRequest("one", o, "a"), newRequest("two", o, "b")
	require.NoError(t, world.Client.Create(t.Context(), one))
	require.NoError(t, world.Client.Create(t.Context(), two))
	completes(t, one)
	completes(t, two)
	isReady(t, o)
	assert.Equal(t, map[string]int32{"a": 1, "b": 1}, restarts(o))
}

// The pod is out of service before its container stops, without a moment of service in between, and back afterwards. A
// kubelet that repeats an old report does so within ten seconds.
func TestThePodIsNotReadyBeforeItsContainerStops(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), nil, newContainer("main", 8080))
	require.NoError(t, world.Client.Create(t.Context(), set))
	o := settles(t, set)
	drained := false
	end := world.Always(t, o.Namespace, func(pods story.Pods) error {
		for _, o := range pods {
			if len(o.Status.ContainerStatuses) == 1 && o.Status.ContainerStatuses[0].State.Running != nil && o.Status.ContainerStatuses[0].RestartCount == 0 {
				if drained && story.IsReady(o) {
					return story.Want(false, "the pod is ready again before its container stops")
				}
				drained = drained || !story.IsReady(o)
			} else if !drained {
				return story.Want(false, "the container stopped in a pod that was in service")
			}
		}
		return nil
	})
	r := newRequest("restart", o, "main")
	r.Spec.Strategy.UnreadyGracePeriodSeconds = new(int64(12))
	require.NoError(t, world.Client.Create(t.Context(), r))
	completes(t, r)
	isReady(t, o)
	end()
	assert.True(t, drained)
	assert.EqualValues(t, 1, restarts(o)["main"])
	assert.Equal(t, metav1.ConditionTrue, story.Condition(r, v1beta1.PreRecreateGrace).Status)
	assert.Equal(t, corev1.ConditionTrue, story.PodCondition(o, contract.KruisePodReady).Status)
	story.Reaches(t, world, r, "the finalizer's end", func(r *v1beta1.ContainerRecreateRequest) error {
		return story.Want(len(r.Finalizers) == 0, "finalizers are %v", r.Finalizers)
	})
}

func TestARequestEndsWithItsPod(t *testing.T) {
	t.Parallel()
	o := givenPod(t, newContainer("main", 8080))
	r := newRequest("restart", o, "main")
	r.Spec.Strategy.UnreadyGracePeriodSeconds = new(int64(600))
	require.NoError(t, world.Client.Create(t.Context(), r))
	require.NoError(t, world.Client.Delete(t.Context(), o))
	completes(t, r)
	assert.Equal(t, "pod has gone", r.Status.Message)
}

func TestAFinishedRequestIsDeleted(t *testing.T) {
	t.Parallel()
	o := givenPod(t, newContainer("main", 8080))
	r := newRequest("restart", o, "main")
	r.Spec.TTLSecondsAfterFinished = new(int32(3))
	require.NoError(t, world.Client.Create(t.Context(), r))
	story.Gone(t, world, r)
	require.NoError(t, world.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o))
	assert.EqualValues(t, 1, restarts(o)["main"])
}
