package inplace

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/inplace/completion"
)

// leaving is a pod whose update of container app has begun and whose kubelet has not answered yet.
func leaving(t *testing.T, grace int32) *corev1.Pod {
	t.Helper()
	v1 := revisionOf("w-1", templateOf("app"))
	v2 := revisionOf("w-2", variant(v1.Template, func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = "app:v2" }))
	u, err := Diff(v1, v2, allGates)
	require.NoError(t, err)
	c := action.NewPodChange(runningPod(v1.Template, "w-1"), at(0))
	u.Begin(c, grace)
	c.SetLabel(contract.RevisionLabel, "w-2")
	assert.Equal(t, []string{"status"}, subresources(c))
	return written(t, c)
}

// ready is the pod as a kubelet reports it that has changed Ready at the moment.
func ready(pod *corev1.Pod, status corev1.ConditionStatus, since time.Duration) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Status.Conditions[0].Status, pod.Status.Conditions[0].LastTransitionTime = status, at(since)
	return pod
}

func TestContainersStopOnceThePodIsSeenNotReady(t *testing.T) {
	pod := leaving(t, 0)
	assert.Equal(t, corev1.ConditionTrue, pod.Status.Conditions[0].Status, "Ready is the kubelet's")
	_, p, writes := refresh(t, pod, at(time.Second))
	assert.Equal(t, completion.ReasonKubelet, p.Reason)
	assert.Equal(t, "the kubelet has yet to report the pod as not ready", p.Message)
	assert.Equal(t, answerTimeLeft(time.Second), p.RequeueAfter)
	assert.Empty(t, writes)

	pod, _, writes = refresh(t, ready(pod, corev1.ConditionFalse, time.Second), at(time.Second))
	assert.Equal(t, []string{"pod"}, writes)
	assert.Equal(t, "app:v2", pod.Spec.Containers[0].Image)
	assert.NotContains(t, pod.Annotations, contract.InPlaceUpdateGraceAnnotation)
}

func answerTimeLeft(passed time.Duration) time.Duration { return 2*time.Minute - passed }

// A virtual kubelet may not know of readiness gates.
func TestAKubeletThatDoesNotAnswerHoldsUpNoUpdate(t *testing.T) {
	for _, grace := range []int32{0, 10} {
		pod, _, writes := refresh(t, leaving(t, grace), at(2*time.Minute))
		assert.Equal(t, []string{"pod"}, writes)
		assert.Equal(t, "app:v2", pod.Spec.Containers[0].Image)
	}
}

func TestPodsThatDoNotServeAreNotWaitedFor(t *testing.T) {
	v1 := revisionOf("w-1", templateOf("app"))
	v2 := revisionOf("w-2", variant(v1.Template, func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = "app:v2" }))
	for name, prepare := range map[string]func(*corev1.Pod){
		"not ready":         func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse },
		"never reported":    func(p *corev1.Pod) { p.Status.Conditions = nil },
		"no readiness gate": func(p *corev1.Pod) { p.Spec.ReadinessGates = nil },
	} {
		t.Run(name, func(t *testing.T) {
			pod := runningPod(v1.Template, "w-1")
			prepare(pod)
			u, err := Diff(v1, v2, allGates)
			require.NoError(t, err)
			c := action.NewPodChange(pod, at(0))
			u.Begin(c, 0)
			assert.Equal(t, "app:v2", written(t, c).Spec.Containers[0].Image)
		})
	}
}

// The period counts from when the pod is seen not ready, and anew when Ready was True once more, seen or not.
func TestTheGracePeriodBeginsWhenThePodIsNotReady(t *testing.T) {
	out := func(pod *corev1.Pod, since time.Duration) *corev1.Pod {
		return ready(pod, corev1.ConditionFalse, since)
	}
	step := func(pod *corev1.Pod, now time.Duration, reason string, left time.Duration) *corev1.Pod {
		c := action.NewPodChange(pod, at(now))
		p := Refresh(c, allGates)
		assert.Equal(t, reason, p.Reason, now)
		assert.Equal(t, left, p.RequeueAfter, now)
		return written(t, c)
	}
	pod := leaving(t, 10)
	pod = step(pod, 5*time.Second, completion.ReasonKubelet, answerTimeLeft(5*time.Second))
	pod = step(out(pod, 6*time.Second), 6*time.Second, completion.ReasonGracePeriod, 10*time.Second)
	pod = step(pod, 9*time.Second, completion.ReasonGracePeriod, 7*time.Second)
	pod = step(ready(pod, corev1.ConditionTrue, 10*time.Second), 10*time.Second, completion.ReasonKubelet, answerTimeLeft(10*time.Second))
	pod = step(out(pod, 11*time.Second), 12*time.Second, completion.ReasonGracePeriod, 10*time.Second)
	pod = step(out(pod, 15*time.Second), 21*time.Second, completion.ReasonGracePeriod, 10*time.Second)
	assert.Equal(t, "app:v1", pod.Spec.Containers[0].Image)
	pod = step(pod, 31*time.Second, completion.ReasonBatch, 0)
	assert.Equal(t, "app:v2", pod.Spec.Containers[0].Image)
}

// A pod that was taken back into service in the middle of its update leaves it again before the next containers.
func TestNextContainersStopOnceThePodIsSeenNotReady(t *testing.T) {
	v1 := revisionOf("w-1", templateOf("a", "b"))
	v2 := revisionOf("w-2", variant(v1.Template, func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].Image, t.Spec.Containers[1].Image = "a:v2", "b:v2"
	}))
	pod := runningPod(v1.Template, "w-1")
	pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, barrier("p_2"))
	pod.Spec.Containers[1].Env = append(pod.Spec.Containers[1].Env, barrier("p_1"))
	pod = written(t, begin(t, pod, v1, v2, 0, at(0)))
	restarted(pod, "a", "a-1")
	c := action.NewPodChange(pod, at(time.Second))
	PutIntoService(c, allGates)
	pod = answered(written(t, c), at(time.Second))
	require.Equal(t, corev1.ConditionTrue, pod.Status.Conditions[0].Status)

	c = action.NewPodChange(pod, at(2*time.Second))
	p := Refresh(c, allGates)
	assert.Equal(t, completion.ReasonKubelet, p.Reason)
	assert.Equal(t, []string{"status"}, subresources(c))
	pod, p, _ = refresh(t, answered(written(t, c), at(3*time.Second)), at(3*time.Second))
	assert.Equal(t, completion.ReasonBatch, p.Reason)
	assert.Equal(t, "b:v2", pod.Spec.Containers[1].Image)
}

// What is only planned is dropped for another revision; the time out of service counts on.
func TestASupersededPlanIsDropped(t *testing.T) {
	v1 := revisionOf("w-1", templateOf("app"))
	at2 := func(image string) *corev1.PodTemplateSpec {
		return variant(v1.Template, func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = image })
	}
	v2, v3 := revisionOf("w-2", at2("app:v2")), revisionOf("w-3", at2("app:v3"))
	pod, _, _ := refresh(t, ready(leaving(t, 10), corev1.ConditionFalse, time.Second), at(time.Second))

	forward := written(t, begin(t, pod, v2, v3, 10, at(4*time.Second)))
	assert.Equal(t, "app:v1", forward.Spec.Containers[0].Image)
	forward, p, _ := refresh(t, forward, at(5*time.Second))
	assert.Equal(t, 6*time.Second, p.RequeueAfter)
	forward, _, _ = refresh(t, forward, at(11*time.Second))
	assert.Equal(t, "app:v3", forward.Spec.Containers[0].Image)

	back := written(t, begin(t, pod, v2, v1, 10, at(4*time.Second)))
	assert.NotContains(t, back.Annotations, contract.InPlaceUpdateGraceAnnotation)
	back, p, writes := refresh(t, back, at(5*time.Second))
	assert.True(t, p.Complete)
	assert.Equal(t, []string{"status"}, writes)
	assert.Equal(t, corev1.ConditionTrue, gateOf(back))
	assert.Equal(t, "app:v1", back.Spec.Containers[0].Image)
}
