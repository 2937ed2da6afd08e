package agent_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

var succeeded = v1beta1.RecreateSucceeded

func TestOneContainerOfThreeIsRecreatedAndOnlyThatOne(t *testing.T) {
	n := givenNode(t)
	n.givenManager()
	pod := n.run(n.podNamed("web", "app", "proxy", "log"))
	phases, _ := n.eventuallyCompleted(n.ask(n.requestFor(pod, "proxy")))

	assert.Equal(t, []v1beta1.RecreatePhase{succeeded}, phases)
	assert.Equal(t, []string{containerID(pod, "proxy")}, n.stopped())
	after := n.fresh(pod)
	for _, name := range []string{"app", "log"} {
		assert.Equal(t, containerID(pod, name), containerID(after, name))
	}
	assert.NotEqual(t, containerID(pod, "proxy"), containerID(after, "proxy"))
	killing := n.eventuallyEvent("web", "Killing")
	assert.Equal(t, "spec.containers{proxy}", killing.Regarding.FieldPath)
	assert.Contains(t, killing.Note, "Stopping container proxy by ContainerRecreateRequest r-")
	assert.Equal(t, pod.UID, killing.Regarding.UID)
	_, text := n.get("/metrics")
	assert.Contains(t, text, `kruise_agent_container_kills_total{reason="ContainerRecreateRequest",result="succeeded"} 1`)
}

func TestOrderedRecreationStopsTheNextAfterTheOneBefore(t *testing.T) {
	n := givenNode(t)
	n.givenManager()
	pod := n.run(n.podNamed("web", "app", "proxy"))
	request := n.requestFor(pod, "proxy", "app")
	request.Spec.Strategy.OrderedRecreate = true
	request.Spec.Strategy.MinStartedSeconds = 1
	phases, _ := n.eventuallyCompleted(n.ask(request))

	assert.Equal(t, []v1beta1.RecreatePhase{succeeded, succeeded}, phases)
	assert.Equal(t, []string{containerID(pod, "proxy"), containerID(pod, "app")}, n.stopped())
	stops := n.runtime.Calls("StopContainer")
	assert.Greater(t, stops[1].At.Sub(stops[0].At), time.Second, "the new proxy has run for a second")
}

func TestHooksRunBeforeTheStopWithinTheGrace(t *testing.T) {
	asked := make(chan *http.Request, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r }))
	defer server.Close()
	address, err := url.Parse(server.URL)
	require.NoError(t, err)
	port, err := strconv.ParseInt(address.Port(), 10, 32)
	require.NoError(t, err)

	n := givenNode(t)
	n.givenManager()
	pod := n.run(n.podNamed("web", "shell", "http", "nap", "bad"))
	request := n.requestFor(pod, "shell", "http", "nap", "bad")
	c := request.Spec.Containers
	c[0].PreStop = &v1beta1.PreStopHandler{Exec: &corev1.ExecAction{Command: []string{"bye"}}}
	c[1].PreStop = &v1beta1.PreStopHandler{HTTPGet: &corev1.HTTPGetAction{
		Path: "/bye?now=1", Port: intstr.FromString("web"), HTTPHeaders: []corev1.HTTPHeader{{Name: "Host", Value: "me"}, {Name: "X-A", Value: "b"}},
	}}
	c[1].Ports = []corev1.ContainerPort{{Name: "web", ContainerPort: int32(port)}}
	c[2].PreStop = &v1beta1.PreStopHandler{Sleep: &corev1.SleepAction{Seconds: 1}}
	c[3].PreStop = &v1beta1.PreStopHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromString("nowhere")}}
	phases, _ := n.eventuallyCompleted(n.ask(request))

	assert.Equal(t, []v1beta1.RecreatePhase{succeeded, succeeded, succeeded, succeeded}, phases)
	commands := n.runtime.Calls("ExecSync")
	require.Len(t, commands, 1)
	assert.Equal(t, []string{"bye"}, commands[0].Request.(*runtimev1.ExecSyncRequest).Cmd)
	assert.Equal(t, int64(9), commands[0].Request.(*runtimev1.ExecSyncRequest).Timeout)
	hook := <-asked
	assert.Equal(t, []string{"/bye?now=1", "me", "b"}, []string{hook.URL.String(), hook.Host, hook.Header.Get("X-A")})
	stops := n.runtime.Calls("StopContainer")
	require.Len(t, stops, 4)
	assert.True(t, commands[0].At.Before(stops[0].At))
	assert.Equal(t, int64(8), stops[2].Request.(*runtimev1.StopContainerRequest).Timeout, "the nap has taken a second of nine")
	failed := n.eventuallyEvent("web", "FailedPreStopHook")
	assert.Equal(t, `PreStop hook failed: the container has no port "nowhere"`, failed.Note)
}

func TestAContainerHasTwoSecondsAfterAHookThatTookAllOfTheGrace(t *testing.T) {
	n := givenNode(t)
	n.givenManager()
	pod := n.run(n.podNamed("web", "app"))
	request := n.requestFor(pod, "app")
	request.Spec.Strategy.TerminationGracePeriodSeconds = new(int64(1))
	request.Spec.Containers[0].PreStop = &v1beta1.PreStopHandler{Sleep: &corev1.SleepAction{Seconds: 60}}
	n.eventuallyCompleted(n.ask(request))
	assert.Equal(t, int64(2), n.runtime.Calls("StopContainer")[0].Request.(*runtimev1.StopContainerRequest).Timeout)
	assert.Equal(t, "PreStop hook failed: it took longer than the grace period of 1s", n.eventuallyEvent("web", "FailedPreStopHook").Note)
}

func TestRequestsForOnePodAreServedInTurnAndAllEnd(t *testing.T) {
	n := givenNode(t)
	n.givenManager()
	pod := n.run(n.podNamed("web", "app"))
	first, second, third := n.requestFor(pod, "app"), n.requestFor(pod, "app"), n.requestFor(pod, "app")
	third.Spec.Strategy.ForceRecreate = true
	for i, request := range []*v1beta1.ContainerRecreateRequest{first, second, third} {
		request.Name = "r-" + strconv.Itoa(i) // requests of the same second are served by name
		n.ask(request)
	}
	for _, request := range []*v1beta1.ContainerRecreateRequest{first, second, third} {
		phases, _ := n.eventuallyCompleted(request)
		assert.Equal(t, []v1beta1.RecreatePhase{succeeded}, phases)
	}
	assert.Len(t, n.stopped(), 2, "the second is content with what the first did, the third is not")
}

func TestContainersOfAPodThatTookTheNameAreLeftAlone(t *testing.T) {
	n := givenNode(t)
	n.givenManager()
	pod := n.run(n.podNamed("web", "app"))
	request := n.requestFor(pod, "app")
	request.Labels[v1beta1.PodUIDLabel] = "another"
	_, result := n.eventuallyCompleted(n.ask(request))
	assert.Equal(t, "pod has gone", result.Message)
	assert.Empty(t, n.stopped())
}

func TestAKillThatFailsFollowsTheFailurePolicy(t *testing.T) {
	n := givenNode(t)
	n.givenManager()
	pod := n.run(n.podNamed("web", "app", "proxy"))
	n.runtime.Fail("StopContainer", func(_ context.Context, request any) error {
		if "containerd://"+request.(*runtimev1.StopContainerRequest).ContainerId == containerID(pod, "app") {
			return status.Error(codes.Internal, "no such shim")
		}
		return nil
	})
	phases, result := n.eventuallyCompleted(n.ask(n.requestFor(pod, "app", "proxy")))
	assert.Equal(t, []v1beta1.RecreatePhase{v1beta1.RecreateFailed, v1beta1.RecreatePending}, phases)
	assert.Contains(t, result.ContainerRecreateStates[0].Message, "kill container error: StopContainer: ")

	request := n.requestFor(pod, "app", "proxy")
	request.Spec.Strategy.FailurePolicy = v1beta1.FailurePolicyIgnore
	phases, _ = n.eventuallyCompleted(n.ask(request))
	assert.Equal(t, []v1beta1.RecreatePhase{v1beta1.RecreateFailed, succeeded}, phases)
}

func TestADeletedRequestEndsTheWaitForItsHook(t *testing.T) {
	n := givenNode(t)
	n.givenManager()
	pod := n.run(n.podNamed("web", "app"))
	request := n.requestFor(pod, "app")
	request.Spec.Strategy.TerminationGracePeriodSeconds = new(int64(100))
	request.Spec.Containers[0].PreStop = &v1beta1.PreStopHandler{Sleep: &corev1.SleepAction{Seconds: 99}}
	n.ask(request)
	n.eventuallyEvent("web", "Killing")
	require.NoError(t, n.client.Delete(t.Context(), request))

	again := n.requestFor(pod, "app")
	phases, _ := n.eventuallyCompleted(n.ask(again))
	assert.Equal(t, []v1beta1.RecreatePhase{succeeded}, phases)
	assert.Equal(t, []string{containerID(pod, "app")}, n.stopped(), "by the second request only")
}

// A deadline ends the request, not the stop that has begun: its hook runs to the end, the container restarts, and
// the request says so.
func TestAStopThatHasBegunOutlastsTheDeadline(t *testing.T) {
	n := givenNode(t)
	n.givenManager()
	pod := n.run(n.podNamed("web", "app", "proxy"))
	request := n.requestFor(pod, "app", "proxy")
	request.Spec.ActiveDeadlineSeconds = new(int64(3))
	request.Spec.Containers[0].PreStop = &v1beta1.PreStopHandler{Sleep: &corev1.SleepAction{Seconds: 8}}
	_, result := n.eventuallyCompleted(n.ask(request))
	assert.Equal(t, "recreating has exceeded the activeDeadlineSeconds", result.Message)
	assert.Equal(t, []v1beta1.ContainerRecreateState{
		{Name: "app", Phase: v1beta1.RecreatePending, ContainerID: containerID(pod, "app")},
		{Name: "proxy", Phase: v1beta1.RecreatePending},
	}, result.ContainerRecreateStates)
	assert.Empty(t, n.stopped(), "the hook runs")

	await.Until(t, func(check *assert.CollectT) { assert.NotEmpty(check, n.stopped()) })
	_, after := n.eventuallyCompleted(request)
	assert.Equal(t, []v1beta1.ContainerRecreateState{
		{Name: "app", Phase: v1beta1.RecreateRecreating, IsKilled: true, ContainerID: containerID(pod, "app")},
		{Name: "proxy", Phase: v1beta1.RecreatePending},
	}, after.ContainerRecreateStates)
	assert.Equal(t, result.CompletionTime, after.CompletionTime)

	n.eventuallyCompleted(n.ask(n.requestFor(n.fresh(pod), "proxy")))
	assert.Equal(t, []string{containerID(pod, "app"), containerID(pod, "proxy")}, n.stopped(), "each once, the proxy for the second request")
}

func TestAStopIsGivenUpWithItsPod(t *testing.T) {
	n := givenNode(t)
	n.givenManager()
	pod := n.podNamed("web", "app")
	pod.Finalizers = []string{"example.io/stays"}
	pod = n.run(pod)
	request := n.requestFor(pod, "app")
	request.Spec.Containers[0].PreStop = &v1beta1.PreStopHandler{Sleep: &corev1.SleepAction{Seconds: 3}}
	n.ask(request)
	n.eventuallyEvent("web", "Killing")
	require.NoError(t, n.client.Delete(t.Context(), pod))
	_, result := n.eventuallyCompleted(request)
	assert.Equal(t, "pod has gone", result.Message)
	again := n.run(n.podNamed("web-2", "app"))
	request = n.requestFor(again, "app")
	request.Spec.Containers[0].PreStop = &v1beta1.PreStopHandler{Sleep: &corev1.SleepAction{Seconds: 4}}
	n.eventuallyCompleted(n.ask(request))
	assert.Equal(t, []string{containerID(again, "app")}, n.stopped(), "a hook that began later is over, and that of the pod has stopped nothing")
	require.NoError(t, n.client.Patch(t.Context(), n.fresh(pod), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
}

func TestARestartedAgentTakesUpARequest(t *testing.T) {
	n := givenNode(t)
	n.givenManager()
	pod := n.run(n.podNamed("web", "app", "proxy"))
	request := n.requestFor(pod, "app", "proxy")
	request.Spec.Strategy.OrderedRecreate, request.Spec.Strategy.MinStartedSeconds = true, 2
	n.ask(request)
	await.Until(t, func(check *assert.CollectT) { assert.Len(check, n.stopped(), 1) })
	n.stop()
	n.start()
	phases, _ := n.eventuallyCompleted(request)
	assert.Equal(t, []v1beta1.RecreatePhase{succeeded, succeeded}, phases)
	assert.Equal(t, []string{containerID(pod, "app"), containerID(pod, "proxy")}, n.stopped(), "each once")
}

func TestAStopUnderWayIsFinishedWhenTheAgentEnds(t *testing.T) {
	n := givenNode(t)
	n.givenManager()
	pod := n.run(n.podNamed("web", "app"))
	request := n.requestFor(pod, "app")
	request.Spec.Containers[0].PreStop = &v1beta1.PreStopHandler{Sleep: &corev1.SleepAction{Seconds: 2}}
	n.ask(request)
	n.eventuallyEvent("web", "Killing")
	n.stop()
	assert.Equal(t, []string{containerID(pod, "app")}, n.stopped())
}

func TestRequestsWaitForARuntimeThatIsAway(t *testing.T) {
	n := givenNode(t)
	n.givenManager()
	pod := n.run(n.podNamed("web", "app"))
	n.eventuallyReady()
	n.runtime.Stop()
	request := n.ask(n.requestFor(pod, "app"))
	await.Until(t, func(c *assert.CollectT) {
		_, body := n.get("/readyz")
		assert.Contains(c, body, "check runtime failed")
	})
	n.runtime.Start(t)
	phases, _ := n.eventuallyCompleted(request)
	assert.Equal(t, []v1beta1.RecreatePhase{succeeded}, phases)
}

func TestThePodIsOutOfServiceForAWhileBeforeTheFirstStop(t *testing.T) {
	n := givenNode(t)
	n.givenManager()
	pod := n.run(n.podNamed("web", "app"))
	request := n.requestFor(pod, "app")
	request.Spec.Strategy.UnreadyGracePeriodSeconds = new(int64(2))
	n.ask(request)
	phases, result := n.eventuallyCompleted(request)
	assert.Equal(t, []v1beta1.RecreatePhase{succeeded}, phases)
	grace := meta.FindStatusCondition(result.Conditions, v1beta1.PreRecreateGrace)
	require.NotNil(t, grace, "the end of the request leaves it")
	assert.True(t, meta.IsStatusConditionTrue(result.Conditions, v1beta1.RecreateComplete))
	// The condition's time has whole seconds.
	since := grace.LastTransitionTime
	assert.GreaterOrEqual(t, n.runtime.Calls("StopContainer")[0].At.Sub(since.Time), 2*time.Second)
}

func TestRequestsForOtherNodesAreLeftAlone(t *testing.T) {
	n := givenNode(t)
	n.givenManager()
	pod := n.run(n.podNamed("web", "app"))
	elsewhere := n.requestFor(pod, "app")
	elsewhere.Labels[v1beta1.NodeNameLabel] = "other"
	n.ask(elsewhere)
	n.eventuallyCompleted(n.ask(n.requestFor(pod, "app")))
	now := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: n.name, Name: elsewhere.Name}}
	require.NoError(t, n.client.Get(t.Context(), client.ObjectKeyFromObject(now), now))
	assert.Empty(t, now.Status.Phase)
}
