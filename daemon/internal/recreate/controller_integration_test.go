package recreate_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/plan"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/result"
)

// givenPod returns a pod with containers a and b and a readiness gate.
func givenPod(t *testing.T, c client.Client) *corev1.Pod {
	t.Helper()
	return givenPodWith(t, c, []corev1.PodReadinessGate{{ConditionType: contract.KruisePodReady}})
}

func givenPodWith(t *testing.T, c client.Client, gates []corev1.PodReadinessGate) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "web"},
		Spec: corev1.PodSpec{
			NodeName: "node-1", ReadinessGates: gates,
			Containers: []corev1.Container{{Name: "a", Image: "app:1"}, {Name: "b", Image: "app:1"}},
		},
	}
	require.NoError(t, c.Create(t.Context(), pod))
	return pod
}

// newRequest returns a request for the containers, as admission fills it in.
func newRequest(name string, pod *corev1.Pod, containers ...string) *v1beta1.ContainerRecreateRequest {
	r := &v1beta1.ContainerRecreateRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: name, Labels: map[string]string{
			v1beta1.PodUIDLabel: string(pod.UID), v1beta1.NodeNameLabel: "node-1", v1beta1.ActiveLabel: "true",
		}},
		Spec: v1beta1.ContainerRecreateRequestSpec{PodName: pod.Name, Strategy: &v1beta1.RecreateStrategy{}},
	}
	for _, c := range containers {
		r.Spec.Containers = append(r.Spec.Containers, v1beta1.ContainerToRecreate{
			Name: c, StatusContext: &v1beta1.ContainerStatusContext{ContainerID: "containerd://" + c + "-0"},
		})
	}
	return r
}

// completes waits until the request is complete and has lost its marks.
func completes(t *testing.T, c client.Client, r *v1beta1.ContainerRecreateRequest) {
	t.Helper()
	await.Until(t, func(collect *assert.CollectT) {
		require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(r), r))
		assert.Equal(collect, v1beta1.RecreateCompleted, r.Status.Phase)
		assert.NotContains(collect, r.Labels, v1beta1.ActiveLabel)
		assert.Empty(collect, r.Finalizers)
	})
}

func TestAContainerIsRecreated(t *testing.T) {
	c := givenController(t)
	audit := env.Audit(t)
	pod := givenPod(t, c)
	machine := givenNode(t, c, pod)
	r := newRequest("again", pod, "a")
	require.NoError(t, c.Create(t.Context(), r))
	completes(t, c, r)
	assert.Equal(t, []string{"containerd://a-0"}, machine.killed())
	assert.Equal(t, []v1beta1.ContainerRecreateState{{Name: "a", Phase: v1beta1.RecreateSucceeded, IsKilled: true}}, r.Status.ContainerRecreateStates)
	assert.Equal(t, []v1beta1.ContainerStatusSnapshot{{Name: "a", Ready: true, RestartCount: 1, ContainerID: "containerd://a-1"}}, r.Status.ContainerStatusSnapshot)
	assert.Empty(t, r.Status.Message)
	assert.True(t, meta.IsStatusConditionTrue(r.Status.Conditions, v1beta1.RecreateComplete))
	assert.Equal(t, map[string]int{
		"patch containerrecreaterequests/status": 1, "patch containerrecreaterequests": 1,
	}, audit.Writes(t, userAgent), "the snapshot and the end")
}

// 2474, 1626, 1058: the second request for a pod stayed pending for ever.
func TestRequestsForOnePodAreServedInTurn(t *testing.T) {
	c := givenController(t)
	pod := givenPod(t, c)
	machine := givenNode(t, c, pod)
	first, second, third := newRequest("first", pod, "a", "b"), newRequest("second", pod, "b"), newRequest("third", pod, "a")
	third.Spec.Strategy.ForceRecreate = true
	for _, r := range []*v1beta1.ContainerRecreateRequest{first, second, third} {
		require.NoError(t, c.Create(t.Context(), r))
	}
	for _, r := range []*v1beta1.ContainerRecreateRequest{first, second, third} {
		completes(t, c, r)
		for _, s := range r.Status.ContainerRecreateStates {
			assert.Equal(t, v1beta1.RecreateSucceeded, s.Phase, "%s of %s", s.Name, r.Name)
		}
	}
	assert.Equal(t, []string{"containerd://a-0", "containerd://b-0", "containerd://a-1"}, machine.killed(),
		"b had been recreated already when it was the second one's turn; the third one forces it")
}

func TestThePodIsNotReadyMeanwhile(t *testing.T) {
	c := givenController(t)
	pod := givenPod(t, c)
	machine := givenNode(t, c, pod)
	r := newRequest("again", pod, "a")
	r.Spec.Strategy.UnreadyGracePeriodSeconds = new(int64(2))
	r.Spec.TTLSecondsAfterFinished = new(int32(1))
	require.NoError(t, c.Create(t.Context(), r))
	held := testenv.Passes(t, &env, pod, func(pod *corev1.Pod) bool { return podstate.Condition(pod, contract.KruisePodReady) != nil })
	condition := podstate.Condition(held, contract.KruisePodReady)
	assert.Equal(t, corev1.ConditionFalse, condition.Status)
	assert.JSONEq(t, `[{"userAgent":"ContainerRecreateRequest","key":"`+r.Namespace+`/again"}]`, condition.Message)
	waiting := testenv.Passes(t, &env, r, func(r *v1beta1.ContainerRecreateRequest) bool {
		return meta.IsStatusConditionTrue(r.Status.Conditions, v1beta1.PreRecreateGrace)
	})
	assert.Contains(t, waiting.Finalizers, v1beta1.UnreadyAcquiredFinalizer, "the pod is held before the grace begins")
	restarted := testenv.Passes(t, &env, held, func(pod *corev1.Pod) bool { return pod.Status.ContainerStatuses[0].ContainerID != "containerd://a-0" })
	assert.Equal(t, corev1.ConditionFalse, podstate.Condition(restarted, contract.KruisePodReady).Status, "it is held until its container has started")
	testenv.Passes(t, &env, restarted, func(pod *corev1.Pod) bool {
		return podstate.Condition(pod, contract.KruisePodReady).Status == corev1.ConditionTrue
	})
	assert.Equal(t, []string{"containerd://a-0"}, machine.killed())
	await.Until(t, func(collect *assert.CollectT) {
		assert.True(collect, apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(r), r)), "ttl counts by the manager's clock")
	})
}

func TestADeletedRequestReleasesThePod(t *testing.T) {
	c := givenController(t)
	pod := givenPod(t, c)
	machine := givenNode(t, c, pod)
	r := newRequest("again", pod, "a")
	r.Spec.Strategy.UnreadyGracePeriodSeconds = new(int64(3600))
	require.NoError(t, c.Create(t.Context(), r))
	status := func() corev1.ConditionStatus {
		require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
		if held := podstate.Condition(pod, contract.KruisePodReady); held != nil {
			return held.Status
		}
		return ""
	}
	await.Until(t, func(collect *assert.CollectT) { assert.Equal(collect, corev1.ConditionFalse, status()) })
	require.NoError(t, c.Delete(t.Context(), r))
	await.Until(t, func(collect *assert.CollectT) {
		assert.True(collect, apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(r), r)))
		assert.Equal(collect, corev1.ConditionTrue, status())
	})
	assert.Empty(t, machine.killed())
}

func TestRequestsThatCannotBeFulfilled(t *testing.T) {
	c := givenController(t)
	t.Run("deadline", func(t *testing.T) {
		pod := givenPod(t, c)
		r := newRequest("again", pod, "a")
		r.Spec.ActiveDeadlineSeconds = new(int64(3))
		require.NoError(t, c.Create(t.Context(), r))
		begin := time.Now()
		completes(t, c, r)
		assert.Equal(t, plan.MessageDeadline, r.Status.Message)
		failed := meta.FindStatusCondition(r.Status.Conditions, v1beta1.RecreateNotComplete)
		require.NotNil(t, failed)
		assert.Equal(t, result.ReasonDeadlineExceeded, failed.Reason)
		assert.Greater(t, time.Since(begin), time.Second)
	})
	t.Run("a pod that goes", func(t *testing.T) {
		pod := givenPod(t, c)
		r := newRequest("again", pod, "a")
		require.NoError(t, c.Create(t.Context(), r))
		require.NoError(t, c.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
		completes(t, c, r)
		assert.Equal(t, plan.MessagePodGone, r.Status.Message)
	})
	t.Run("another pod of the name", func(t *testing.T) {
		pod := givenPod(t, c)
		machine := givenNode(t, c, pod)
		r := newRequest("again", pod, "a")
		r.Labels[v1beta1.PodUIDLabel] = "former"
		require.NoError(t, c.Create(t.Context(), r))
		completes(t, c, r)
		assert.Equal(t, plan.MessagePodGone, r.Status.Message)
		assert.Empty(t, machine.killed())
	})
}

// givenSeenRequest returns a request that the manager has seen: the next events decide when it looks again.
func givenSeenRequest(t *testing.T, c client.Client, pod *corev1.Pod) *v1beta1.ContainerRecreateRequest {
	t.Helper()
	r := newRequest("again", pod, "a")
	r.Spec.ActiveDeadlineSeconds = new(int64(3600))
	require.NoError(t, c.Create(t.Context(), r))
	return testenv.Passes(t, &env, r, func(r *v1beta1.ContainerRecreateRequest) bool {
		_, seen := r.Annotations[plan.FirstSeenAnnotation]
		return seen
	})
}

// endsWithItsPod deletes the pod after the passes that the request itself has caused, and waits until that ends the request.
func endsWithItsPod(t *testing.T, c client.Client, r *v1beta1.ContainerRecreateRequest, pod *corev1.Pod) {
	t.Helper()
	<-time.After(2 * time.Second)
	begin := time.Now()
	require.NoError(t, c.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
	completes(t, c, r)
	assert.Equal(t, plan.MessagePodGone, r.Status.Message)
	assert.Less(t, time.Since(begin), plan.NoAnswer/2, "no event has woken it")
}

// The manager follows pods that it caches and pods that it does not.
func TestARequestEndsWithItsPod(t *testing.T) {
	c := givenController(t)
	for name, gates := range map[string][]corev1.PodReadinessGate{
		"cached":     {{ConditionType: contract.KruisePodReady}},
		"not cached": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := givenPodWith(t, c, gates)
			endsWithItsPod(t, c, givenSeenRequest(t, c, pod), pod)
		})
	}
}

// After a watch that broke off, nothing shows which pods are gone.
func TestARequestEndsWithAPodWhoseDeletionIsMissed(t *testing.T) {
	var pod *corev1.Pod
	var missed atomic.Bool
	miss := func(e watch.Event) (watch.Event, bool) {
		gone, ok := e.Object.(*corev1.Pod)
		switch {
		case !ok || gone.UID != pod.UID || gone.DeletionTimestamp == nil && e.Type != watch.Deleted:
			return e, true
		case missed.Swap(true):
			return e, false
		}
		status := apierrors.NewResourceExpired("the watch broke off").Status()
		return watch.Event{Type: watch.Error, Object: &status}, true
	}
	cached, pods := cacheOf("")
	inner := cached.NewInformer
	cached.NewInformer = func(from toolscache.ListerWatcher, example runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		if _, ok := example.(*corev1.Pod); ok {
			from = filtered(from, miss)
		}
		return inner(from, example, resync, indexers)
	}
	c := env.Client(t)
	pod = givenPodWith(t, c, nil)
	env.Control(t, cached, func(mgr manager.Manager, reader fastclient.Options) error {
		return recreate.SetUp(t.Context(), mgr, pass.Settings{Reader: reader, UserAgent: userAgent}, &recreate.Backlog{}, pods)
	})
	endsWithItsPod(t, c, givenSeenRequest(t, c, pod), pod)
	assert.True(t, missed.Load())
}

// filtered returns a server whose watches pass events through the filter.
func filtered(from toolscache.ListerWatcher, pass watch.FilterFunc) toolscache.ListerWatcher {
	return &toolscache.ListWatch{
		ListWithContextFunc: toolscache.ToListerWithContext(from).ListWithContext,
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			inner, err := toolscache.ToWatcherWithContext(from).WatchWithContext(ctx, o)
			if err != nil {
				return nil, err
			}
			return watch.Filter(inner, pass), nil
		},
	}
}
