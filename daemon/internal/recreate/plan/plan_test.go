package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/plan"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/result"
)

func at(seconds int) time.Time { return gen.Epoch().Add(time.Duration(seconds) * time.Second) }

// option changes a request under construction.
type option func(*v1beta1.ContainerRecreateRequest)

// request returns a request for container main of pod web, created at second 0 of the manager and an hour later by the API
// server's clock.
func request(options ...option) *v1beta1.ContainerRecreateRequest {
	r := &v1beta1.ContainerRecreateRequest{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "again", UID: "again", ResourceVersion: "3", CreationTimestamp: metav1.NewTime(at(3600)),
			Labels: map[string]string{v1beta1.PodUIDLabel: string(gen.UID("web")), v1beta1.NodeNameLabel: "node-1", v1beta1.ActiveLabel: "true"},
		},
		Spec: v1beta1.ContainerRecreateRequestSpec{
			PodName: "web", Strategy: &v1beta1.RecreateStrategy{},
			Containers: []v1beta1.ContainerToRecreate{{
				Name: "main", StatusContext: &v1beta1.ContainerStatusContext{ContainerID: "containerd://1", RestartCount: 1},
			}},
		},
	}
	for _, o := range options {
		o(r)
	}
	return r
}

func phase(p v1beta1.RecreatePhase) option {
	return func(r *v1beta1.ContainerRecreateRequest) { r.Status.Phase = p }
}

// completed is a request that the node has completed at second 2 of its own time.
func completed(r *v1beta1.ContainerRecreateRequest) {
	r.Status.Phase, r.Status.CompletionTime = v1beta1.RecreateCompleted, new(metav1.NewTime(at(2)))
}

func deadline(r *v1beta1.ContainerRecreateRequest) { r.Spec.ActiveDeadlineSeconds = new(int64(30)) }

func ttl(seconds int32) option {
	return func(r *v1beta1.ContainerRecreateRequest) { r.Spec.TTLSecondsAfterFinished = &seconds }
}

func unready(r *v1beta1.ContainerRecreateRequest) {
	r.Spec.Strategy.UnreadyGracePeriodSeconds = new(int64(5))
}

// stops marks the container of the time of the request: its hook runs, or the signal is sent.
func stops(killed bool) option {
	return func(r *v1beta1.ContainerRecreateRequest) {
		r.Status.ContainerRecreateStates = []v1beta1.ContainerRecreateState{{
			Name: "main", Phase: v1beta1.RecreateRecreating, IsKilled: killed, ContainerID: "containerd://1",
		}}
	}
}

func inactive(r *v1beta1.ContainerRecreateRequest) { delete(r.Labels, v1beta1.ActiveLabel) }
func finalizer(r *v1beta1.ContainerRecreateRequest) {
	r.Finalizers = []string{"example.io/other", v1beta1.UnreadyAcquiredFinalizer}
}
func deleted(r *v1beta1.ContainerRecreateRequest) { r.DeletionTimestamp = new(metav1.NewTime(at(1))) }
func seenAt(seconds int) option {
	return func(r *v1beta1.ContainerRecreateRequest) {
		r.Annotations = map[string]string{plan.CompletionSeenAnnotation: at(seconds).Format(time.RFC3339Nano) + " " + here}
	}
}

// metAt says that a manager on the machine first saw the request then.
func metAt(seconds int, machine string) option {
	return func(r *v1beta1.ContainerRecreateRequest) {
		r.Annotations = map[string]string{plan.FirstSeenAnnotation: at(seconds).Format(time.RFC3339Nano) + " " + machine}
	}
}

// here is the machine of the manager under test.
const here = "here"

func virtual(r *v1beta1.ContainerRecreateRequest) {
	r.Labels[v1beta1.NodeTypeLabel] = v1beta1.VirtualKubelet
}

// pod returns pod web that runs the container of the time of the request.
func pod(options ...gen.PodOption) *corev1.Pod {
	return gen.Pod("web", append([]gen.PodOption{gen.Ready(at(-10)), runs("containerd://1", 1)}, options...)...)
}

func runs(id string, count int32) gen.PodOption {
	return gen.Change(func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "main", ContainerID: id, RestartCount: count, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}}
	})
}

func ended(pod *corev1.Pod) {
	pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
}

func gated() gen.PodOption { return gen.ReadinessGate(contract.KruisePodReady) }

// held returns a pod that is held not ready with the message.
func held(message string) gen.PodOption {
	return gen.Change(func(pod *corev1.Pod) {
		gated()(pod)
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: contract.KruisePodReady, Status: corev1.ConditionFalse, Message: message,
		})
	})
}

const (
	ours   = `{"userAgent":"ContainerRecreateRequest","key":"default/again"}`
	theirs = `{"userAgent":"Lifecycle","key":"preDeleteHook"}`
)

// steps returns the names of the plan's steps.
func steps(p plan.Plan) string {
	var names []string
	for _, s := range p.Steps {
		names = append(names, s.Name)
	}
	return strings.Join(names, " ")
}

func TestCompute(t *testing.T) {
	recreating := phase(v1beta1.RecreateRecreating)
	other := gen.Change(func(pod *corev1.Pod) { pod.UID = "other" })
	cases := []struct {
		name    string
		request *v1beta1.ContainerRecreateRequest
		pod     *corev1.Pod
		now     int
		sign    int // when the agent was last heard of; 0 is when the request was first seen
		steps   string
		message string // of a request that is completed
		wake    time.Duration
	}{
		{name: "a new one waits for the node", request: request(), pod: pod(), now: 10, wake: 50 * time.Second},
		{name: "not for ever", request: request(), pod: pod(), now: 60, message: plan.MessageNoAnswer},
		{name: "an agent that is at work", request: request(recreating), pod: pod(), now: 600, sign: 580, wake: 40 * time.Second},
		{name: "an agent that is silent", request: request(recreating), pod: pod(), now: 600, sign: 540, message: plan.MessageNoAnswer},
		{name: "an agent that was never heard of since the manager began", request: request(recreating), pod: pod(), now: 60, message: plan.MessageNoAnswer},
		{name: "who waits for others waits as long as the agent is at work", request: request(phase(v1beta1.RecreatePending)), pod: pod(), now: 600, sign: 590, wake: 50 * time.Second},
		{name: "no longer", request: request(phase(v1beta1.RecreatePending)), pod: pod(), now: 600, sign: 540, message: plan.MessageNoAnswer},
		{name: "a provider of virtual nodes that has picked it up", request: request(recreating, virtual), pod: pod(), now: 600},
		{name: "and one that has not", request: request(virtual), pod: pod(), now: 60, message: plan.MessageNoAnswer},
		{name: "a deadline is written down, to count on after a restart", request: request(deadline), pod: pod(), now: 10, steps: "seen", wake: 20 * time.Second},
		{name: "a deadline to come", request: request(deadline, metAt(0, here)), pod: pod(), now: 10, wake: 20 * time.Second},
		{name: "a manager that was restarted counts on", request: request(deadline, metAt(-12, here)), pod: pod(), now: 10, wake: 8 * time.Second},
		{name: "one that was moved to another machine counts anew", request: request(deadline, metAt(-300, "there")), pod: pod(), now: 10, steps: "seen", wake: 20 * time.Second},
		{name: "so does one whose clock was set back", request: request(deadline, metAt(300, here)), pod: pod(), now: 10, steps: "seen", wake: 20 * time.Second},
		{name: "the deadline", request: request(recreating, deadline), pod: pod(), now: 30, message: plan.MessageDeadline},
		{name: "the deadline of one that waits", request: request(phase(v1beta1.RecreatePending), deadline), pod: pod(), now: 30, message: plan.MessageDeadline},
		{name: "no pod", request: request(recreating), now: 1, message: plan.MessagePodGone},
		{name: "another pod of the name", request: request(recreating), pod: pod(other), now: 1, message: plan.MessagePodGone},
		{name: "a pod that is going", request: request(), pod: pod(gen.Terminating()), now: 1, message: plan.MessagePodGone},
		{name: "a pod that is over", request: request(recreating), pod: pod(gen.Phase(corev1.PodFailed)), now: 1, message: plan.MessagePodOver},
		{name: "a pod that is over but for its sidecars", request: request(recreating),
			pod: pod(gen.Phase(corev1.PodSucceeded), gen.Condition(contract.SidecarTerminated, corev1.ConditionTrue, at(0))), now: 1, wake: 59 * time.Second},
		{name: "and then they too", request: request(recreating),
			pod: pod(gen.Phase(corev1.PodSucceeded), gen.Condition(contract.SidecarTerminated, corev1.ConditionTrue, at(0)), gen.Change(ended)), now: 1, message: plan.MessagePodOver},
		{name: "a request without the label of a pod", request: request(func(r *v1beta1.ContainerRecreateRequest) { r.Labels = nil }), pod: pod(), now: 1, message: plan.MessagePodGone},
		{name: "no hold before the node has picked it up", request: request(unready), pod: pod(gated()), now: 1, wake: 59 * time.Second},
		{name: "the hold, with the finalizer first", request: request(recreating, unready), pod: pod(gated()), now: 1, steps: "mark hold", wake: 59 * time.Second},
		{name: "the hold after a crash", request: request(recreating, unready, finalizer), pod: pod(gated()), now: 1, steps: "hold", wake: 59 * time.Second},
		{name: "a finished request loses its label", request: request(completed), pod: pod(), now: 9, steps: "labels"},
		{name: "that is all", request: request(completed, inactive), pod: pod(), now: 9},
		{name: "the pod is released first", request: request(completed, finalizer), pod: pod(held("[" + ours + "]")), now: 9, steps: "release"},
		{name: "not while its container is being stopped", request: request(completed, finalizer, stops(true)), pod: pod(held("[" + ours + "]")), now: 9, steps: "seen"},
		{name: "nor during the hook", request: request(completed, finalizer, stops(false), seenAt(9)), pod: pod(held("[" + ours + "]")), now: 10, wake: 39 * time.Second},
		{name: "but for the grace at the longest", request: request(completed, finalizer, stops(true), seenAt(9)), pod: pod(held("[" + ours + "]")), now: 49, steps: "release"},
		{name: "the container has ended", request: request(completed, finalizer, stops(true), seenAt(9)), pod: pod(held("["+ours+"]"), gen.Change(ended)), now: 11, steps: "release"},
		{name: "or another one runs", request: request(completed, finalizer, stops(true), seenAt(9)), pod: pod(held("["+ours+"]"), runs("containerd://2", 2)), now: 11, steps: "release"},
		{name: "a stop that a deleted request has begun", request: request(recreating, finalizer, deleted, stops(true)), pod: pod(held("[" + ours + "]")), now: 9, steps: "seen"},
		{name: "its hook is given up", request: request(recreating, finalizer, deleted, stops(false)), pod: pod(held("[" + ours + "]")), now: 9, steps: "release"},
		{name: "then the finalizer goes", request: request(completed, finalizer), pod: pod(gated()), now: 9, steps: "labels"},
		{name: "also without the pod", request: request(completed, finalizer, inactive), now: 9, steps: "labels"},
		{name: "another pod is not ours to release", request: request(completed, finalizer, inactive), pod: pod(other, held("["+ours+"]")), now: 9, steps: "labels"},
		{name: "a deleted request releases the pod", request: request(recreating, finalizer, deleted), pod: pod(held("[" + ours + "]")), now: 9, steps: "release"},
		{name: "a deleted request lets go", request: request(recreating, finalizer, deleted), pod: pod(gated()), now: 9, steps: "labels"},
		{name: "a deleted request wants nothing else", request: request(recreating, unready, deleted), pod: pod(gated()), now: 9},
		{name: "ttl begins when the end is seen", request: request(completed, ttl(10)), pod: pod(), now: 400, steps: "labels"},
		{name: "ttl", request: request(completed, ttl(10), inactive, seenAt(400)), pod: pod(), now: 404, wake: 6 * time.Second},
		{name: "the end of ttl", request: request(completed, ttl(10), inactive, seenAt(400)), pod: pod(), now: 410, steps: "ttl"},
		{name: "ttl of one that was finished by others begins when that is seen", request: request(completed, ttl(10), inactive), pod: pod(), now: 12, steps: "labels"},
		{name: "ttl without any time", request: request(phase(v1beta1.RecreateCompleted), ttl(10), inactive), pod: pod(), now: 12, steps: "labels"},
		{name: "no ttl for what is being deleted", request: request(completed, ttl(0), inactive, deleted), pod: pod(), now: 12},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := plan.Snapshot{Request: c.request, Pod: c.pod, FirstSeen: at(0), LastSign: at(c.sign), Now: at(c.now), Clock: here}
			before := c.request.DeepCopy()
			podBefore := c.pod.DeepCopy()
			got := plan.Compute(s)
			assert.Equal(t, c.steps, steps(got), got.String())
			assert.Equal(t, c.wake, got.RequeueAfter)
			if c.message == "" {
				assert.Equal(t, c.request.Status, got.Status(action.Failures{}))
			} else {
				require.Equal(t, v1beta1.RecreateCompleted, got.Status(action.Failures{}).Phase)
				assert.Equal(t, c.message, got.Status(action.Failures{}).Message)
				assert.Equal(t, metav1.NewTime(at(c.now)), *got.Status(action.Failures{}).CompletionTime)
				assert.Len(t, got.Notices, 1)
			}
			assert.Equal(t, got, plan.Compute(s))
			assert.Equal(t, before, c.request)
			assert.Equal(t, podBefore, c.pod)
		})
	}
}

// messageOf returns the message of KruisePodReady that the plan writes.
func messageOf(t *testing.T, p plan.Plan, verb action.Verb) map[string]any {
	t.Helper()
	for _, s := range p.Steps {
		for _, a := range s.Actions {
			if a.Verb == verb {
				return a.Patches[0].Body["status"].(map[string]any)["conditions"].([]any)[0].(map[string]any)
			}
		}
	}
	require.Fail(t, "no such action")
	return nil
}

func TestTheHoldIsSharedWithOthers(t *testing.T) {
	r := request(phase(v1beta1.RecreateRecreating), unready, finalizer)
	c := messageOf(t, plan.Compute(plan.Snapshot{Request: r, Pod: pod(held("[" + theirs + "]")), FirstSeen: at(0), LastSign: at(0), Now: at(1)}), action.PatchStatus)
	assert.Equal(t, "["+ours+","+theirs+"]", c["message"])
	assert.Equal(t, "False", c["status"])

	c = messageOf(t, plan.Compute(plan.Snapshot{Request: request(completed, finalizer), Pod: pod(held("[" + ours + "," + theirs + "]")), FirstSeen: at(0), LastSign: at(0), Now: at(1)}), action.PatchStatus)
	assert.Equal(t, "["+theirs+"]", c["message"])
	assert.Equal(t, "False", c["status"], "others hold it still")

	c = messageOf(t, plan.Compute(plan.Snapshot{Request: request(completed, finalizer), Pod: pod(held("[" + ours + "]")), FirstSeen: at(0), LastSign: at(0), Now: at(1)}), action.PatchStatus)
	assert.Equal(t, "True", c["status"])
}

func TestARequestThatEndsEarlyHasFailed(t *testing.T) {
	for reason, s := range map[string]plan.Snapshot{
		result.ReasonDeadlineExceeded: {Pod: pod(), Request: request(deadline), Now: at(30), LastSign: at(30)},
		result.ReasonPodGone:          {Request: request(), Now: at(1)},
		result.ReasonPodTerminated:    {Pod: pod(gen.Phase(corev1.PodFailed)), Request: request(), Now: at(1)},
		result.ReasonAgentSilent:      {Pod: pod(), Request: request(), Now: at(60)},
	} {
		t.Run(reason, func(t *testing.T) {
			s.FirstSeen = at(0)
			if s.LastSign.IsZero() {
				s.LastSign = at(0)
			}
			status := plan.Compute(s).Status(action.Failures{})
			failed := meta.FindStatusCondition(status.Conditions, v1beta1.RecreateNotComplete)
			require.NotNil(t, failed)
			assert.Equal(t, metav1.ConditionTrue, failed.Status)
			assert.Equal(t, reason, failed.Reason)
			assert.Equal(t, status.Message+": 0 of 1 containers recreated", failed.Message)
			assert.Empty(t, s.Request.Status.Conditions)
		})
	}
}

func TestTheGraceBeginsWhenThePodIsHeld(t *testing.T) {
	grace := func(options ...gen.PodOption) *metav1.Condition {
		r := request(phase(v1beta1.RecreateRecreating), unready, finalizer)
		status := plan.Compute(plan.Snapshot{Request: r, Pod: pod(options...), FirstSeen: at(0), LastSign: at(0), Now: at(7)}).Status(action.Failures{})
		return meta.FindStatusCondition(status.Conditions, v1beta1.PreRecreateGrace)
	}
	assert.Nil(t, grace(gated()), "nobody has taken it out of service yet")
	held := grace(held("[" + ours + "]"))
	require.NotNil(t, held)
	assert.Equal(t, metav1.ConditionTrue, held.Status)
	assert.Equal(t, metav1.NewTime(at(7)), held.LastTransitionTime)
	assert.NotNil(t, grace(), "a pod without the gate stays in service, and the wait takes place")

	r := request(phase(v1beta1.RecreateRecreating), unready, finalizer)
	r.Status.Conditions = []metav1.Condition{*held}
	again := plan.Compute(plan.Snapshot{Request: r, Pod: pod(gated()), FirstSeen: at(0), LastSign: at(0), Now: at(9)})
	assert.True(t, again.Empty())
	assert.Equal(t, r.Status.Conditions, again.Status(action.Failures{}).Conditions, "its time never moves")
}

// The hold is not enough: endpoints follow Ready, which is the kubelet's to write.
func TestTheGraceBeginsWhenTheKubeletReportsThePodNotReady(t *testing.T) {
	reported := func(ready corev1.ConditionStatus) *corev1.Pod {
		return pod(held("["+ours+"]"), gen.Change(func(pod *corev1.Pod) {
			podstate.Condition(pod, corev1.PodReady).Status = ready
			podstate.Condition(pod, contract.KruisePodReady).LastTransitionTime = metav1.NewTime(at(5))
		}))
	}
	r := request(phase(v1beta1.RecreateRecreating), unready, finalizer)
	step := func(now int, ready corev1.ConditionStatus) *metav1.Condition {
		t.Helper()
		p := plan.Compute(plan.Snapshot{Request: r, Pod: reported(ready), FirstSeen: at(0), LastSign: at(now), Now: at(now)})
		require.Empty(t, p.Steps)
		r.Status = p.Status(action.Failures{})
		return meta.FindStatusCondition(r.Status.Conditions, v1beta1.PreRecreateGrace)
	}
	assert.Nil(t, step(7, corev1.ConditionTrue))
	began := step(8, corev1.ConditionFalse)
	require.NotNil(t, began)
	assert.Equal(t, metav1.NewTime(at(8)), began.LastTransitionTime)
	assert.Equal(t, metav1.ConditionFalse, step(10, corev1.ConditionTrue).Status, "it was in service once more")
	again := step(12, corev1.ConditionFalse)
	assert.Equal(t, metav1.ConditionTrue, again.Status)
	assert.Equal(t, metav1.NewTime(at(12)), again.LastTransitionTime)
	r.Status.ContainerRecreateStates = []v1beta1.ContainerRecreateState{{Name: "main", Phase: v1beta1.RecreateRecreating}}
	assert.Equal(t, metav1.ConditionTrue, step(20, corev1.ConditionTrue).Status, "a container is being stopped")

	r = request(phase(v1beta1.RecreateRecreating), unready, finalizer)
	assert.Nil(t, step(124, corev1.ConditionTrue))
	assert.NotNil(t, step(125, corev1.ConditionTrue), "a kubelet that does not answer holds up nobody")
}

// A budget or a policy may refuse that the pod is taken out of service, for hours.
func TestARefusedHoldIsTold(t *testing.T) {
	r := request(phase(v1beta1.RecreateRecreating), unready, finalizer)
	compute := func(p *corev1.Pod, now int) plan.Plan {
		return plan.Compute(plan.Snapshot{Request: r, Pod: p, FirstSeen: at(0), LastSign: at(now), Now: at(now)})
	}
	first := compute(pod(gated()), 1)
	require.Len(t, first.Steps, 1)
	assert.Equal(t, plan.HoldRefused, first.Steps[0].Actions[0].Event.Failed)
	assert.Empty(t, first.Status(action.Failures{}).Conditions)
	for name, refused := range map[string]action.Failures{
		"a budget": {Budget: "no pod may go"}, "a policy": {Blocked: "no pod may go"}, "the server": {UpdateError: "no pod may go"},
	} {
		t.Run(name, func(t *testing.T) {
			told := meta.FindStatusCondition(first.Status(refused).Conditions, v1beta1.PreRecreateGrace)
			require.NotNil(t, told)
			assert.Equal(t, []any{metav1.ConditionFalse, plan.HoldRefused, "the pod could not be set to not ready: no pod may go"}, []any{told.Status, told.Reason, told.Message})
		})
	}
	r.Status = first.Status(action.Failures{Budget: "no pod may go"})
	second := compute(pod(gated()), 2)
	assert.Equal(t, r.Status, second.Status(action.Failures{}), "it stays told until the pod is out of service")
	began := meta.FindStatusCondition(compute(pod(held("["+ours+"]")), 9).Status(action.Failures{UpdateError: "another"}).Conditions, v1beta1.PreRecreateGrace)
	require.NotNil(t, began)
	assert.NotEqual(t, plan.HoldRefused, began.Reason)
}

func TestTheFinalizersOfOthersStay(t *testing.T) {
	p := plan.Compute(plan.Snapshot{Request: request(phase(v1beta1.RecreateRecreating), unready, func(r *v1beta1.ContainerRecreateRequest) { r.Finalizers = []string{"a/b"} }), Pod: pod(gated()), FirstSeen: at(0), LastSign: at(0), Now: at(1)})
	assert.Equal(t, []any{"a/b", v1beta1.UnreadyAcquiredFinalizer}, p.Steps[0].Actions[0].Patches[0].Body["metadata"].(map[string]any)["finalizers"])
	p = plan.Compute(plan.Snapshot{Request: request(completed, finalizer), FirstSeen: at(0), LastSign: at(0), Now: at(1)})
	assert.Equal(t, []any{"example.io/other"}, p.Steps[0].Actions[0].Patches[0].Body["metadata"].(map[string]any)["finalizers"])
}

func TestSnapshot(t *testing.T) {
	seen := []v1beta1.ContainerStatusSnapshot{{Name: "main", Ready: true, RestartCount: 2, ContainerID: "containerd://2"}}
	before := func(r *v1beta1.ContainerRecreateRequest) { r.Status.ContainerStatusSnapshot = seen }
	sidecar := gen.Change(func(pod *corev1.Pod) {
		pod.Status.InitContainerStatuses = pod.Status.ContainerStatuses
		pod.Status.ContainerStatuses = nil
	})
	// The container has started a year before the request was made: that is the node's clock.
	early := gen.Change(func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses[0].State.Running.StartedAt = metav1.NewTime(at(-365 * 24 * 3600))
	})
	cases := []struct {
		name    string
		request *v1beta1.ContainerRecreateRequest
		pod     *corev1.Pod
		want    []v1beta1.ContainerStatusSnapshot
	}{
		{"the run of the time of the request is not recorded", request(), pod(), nil},
		{"another run is", request(), pod(runs("containerd://2", 2)), seen},
		{"whenever it has started", request(), pod(runs("containerd://2", 2), early), seen},
		{"a sidecar is", request(), pod(runs("containerd://2", 2), sidecar), seen},
		{"an ended one is not", request(), pod(runs("containerd://2", 2), gen.Change(ended)), nil},
		{"nothing does not replace something", request(before), pod(runs("containerd://2", 2), gen.Change(ended)), seen},
		{"a container that is not there", request(), gen.Pod("web"), nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.request.Status.Phase = v1beta1.RecreateRecreating
			assert.Equal(t, c.want, plan.Compute(plan.Snapshot{Request: c.request, Pod: c.pod, FirstSeen: at(0), LastSign: at(0), Now: at(5)}).Status(action.Failures{}).ContainerStatusSnapshot)
			c.request.Status.Phase = v1beta1.RecreatePending
			before := c.request.Status.ContainerStatusSnapshot
			assert.Equal(t, before, plan.Compute(plan.Snapshot{Request: c.request, Pod: c.pod, FirstSeen: at(0), LastSign: at(0), Now: at(5)}).Status(action.Failures{}).ContainerStatusSnapshot)
		})
	}
}

func TestActive(t *testing.T) {
	assert.True(t, plan.Active(request()))
	assert.True(t, plan.Active(request(completed, finalizer)))
	assert.True(t, plan.Active(request(deleted, finalizer)))
	assert.False(t, plan.Active(request(completed)))
	assert.False(t, plan.Active(request(deleted)))
}
