package inplace

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/inplace/completion"
	"github.com/flotilla-project/flotilla/core/pods/inplace/record"
	"github.com/flotilla-project/flotilla/core/pods/inplace/running"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
)

// grown are two revisions of containers a and b: the second one resizes a and changes the images of both.
func grown() (v1, v2 *Revision) {
	v1 = revisionOf("w-1", variant(templateOf("a", "b"), func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].Resources.Requests = quantities("1", "1Gi")
	}))
	v2 = revisionOf("w-2", variant(v1.Template, func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].Resources.Requests = quantities("2", "1Gi")
		t.Spec.Containers[0].Image, t.Spec.Containers[1].Image = "a:v2", "b:v2"
	}))
	return v1, v2
}

// resized is the pod after its kubelet has carried the resize out.
func resized(pod *corev1.Pod) *corev1.Pod {
	for _, c := range podspec.LongRunning(&pod.Spec) {
		running.Status(pod, c.Name).Resources = c.Resources.DeepCopy()
	}
	pod.Status.ObservedGeneration = pod.Generation
	return pod
}

// A kubelet that sees the new resources and the new image of a container at once leaves the cgroup of the pod as it was.
func TestAnImageWaitsForTheResizeOfItsContainer(t *testing.T) {
	v1, v2 := grown()
	c := begin(t, runningPod(v1.Template, "w-1"), v1, v2, 0, at(0))
	assert.Equal(t, []string{"resize", "pod"}, subresources(c))
	pod := written(t, c)
	assert.Equal(t, corev1.ConditionFalse, gateOf(pod))
	assert.Equal(t, "2", pod.Spec.Containers[0].Resources.Requests.Cpu().String())
	assert.Equal(t, "a:v1", pod.Spec.Containers[0].Image)
	s := stateOf(t, pod)
	assert.Equal(t, map[string]string{"a": "a:v2", "b": "b:v2"}, s.NextContainerImages)
	assert.Nil(t, s.PreCheckBeforeNext)

	pod, p, writes := refresh(t, pod, at(time.Second))
	assert.Equal(t, completion.ReasonKubelet, p.Reason)
	assert.Empty(t, writes)
	pod.Status.ObservedGeneration = pod.Generation
	pod, p, writes = refresh(t, pod, at(time.Second))
	assert.Equal(t, completion.ReasonResize, p.Reason)
	assert.Empty(t, writes)

	running.Status(pod, "b").Ready = false
	pod, p, writes = refresh(t, resized(pod), at(2*time.Second))
	assert.Equal(t, completion.ReasonBatch, p.Reason, "no container has to be ready")
	assert.Equal(t, []string{"pod"}, writes)
	assert.Equal(t, "a:v2", pod.Spec.Containers[0].Image)
	assert.Equal(t, "b:v2", pod.Spec.Containers[1].Image)

	restarted(pod, "a", "a-1")
	restarted(pod, "b", "b-1")
	pod, p, _ = refresh(t, pod, at(3*time.Second))
	assert.True(t, p.Complete)
	assert.Equal(t, corev1.ConditionTrue, gateOf(pod))
}

// What the node does not give now holds up no image.
func TestAnImageDoesNotWaitForAResizeThatTheNodePutsOff(t *testing.T) {
	for name, condition := range map[string]corev1.PodCondition{
		"deferred":   {Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonDeferred},
		"infeasible": {Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible},
		"failed":     {Type: corev1.PodResizeInProgress, Status: corev1.ConditionTrue, Reason: corev1.PodReasonError},
	} {
		t.Run(name, func(t *testing.T) {
			v1, v2 := grown()
			pod := written(t, begin(t, runningPod(v1.Template, "w-1"), v1, v2, 0, at(0)))
			pod.Status.Conditions = append(pod.Status.Conditions, condition)
			pod, p, writes := refresh(t, pod, at(time.Second))
			assert.Equal(t, completion.ReasonKubelet, p.Reason, "the condition may be about another resize")
			assert.Empty(t, writes)
			pod.Status.ObservedGeneration = pod.Generation
			pod, _, writes = refresh(t, pod, at(time.Second))
			assert.Equal(t, []string{"pod"}, writes)
			assert.Equal(t, "a:v2", pod.Spec.Containers[0].Image)

			restarted(pod, "a", "a-1")
			restarted(pod, "b", "b-1")
			pod, p, _ = refresh(t, pod, at(time.Minute))
			assert.Equal(t, completion.ReasonResize+condition.Reason, p.Reason, "the update is complete when both are")
			_, p, _ = refresh(t, resized(pod), at(time.Minute))
			assert.True(t, p.Complete)
		})
	}
}

// Nothing can be resized where nothing runs: a container that crashes gets its image at once, and its resources when it
// has been started with it. One that crashes meanwhile is waited for no longer.
func TestAnImageDoesNotWaitForAContainerThatIsDown(t *testing.T) {
	down := func(pod *corev1.Pod) *corev1.Pod {
		running.Status(pod, "a").State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
		return pod
	}
	v1, v2 := grown()
	c := begin(t, down(runningPod(v1.Template, "w-1")), v1, v2, 0, at(0))
	assert.Equal(t, []string{"pod"}, subresources(c))
	pod := written(t, c)
	assert.Equal(t, "a:v2", pod.Spec.Containers[0].Image)
	pod.Status.ObservedGeneration = pod.Generation
	_, p, writes := refresh(t, pod, at(time.Second))
	assert.Equal(t, completion.ReasonContainer, p.Reason)
	assert.Empty(t, writes)
	restarted(pod, "b", "b-1")
	restarted(pod, "a", "a-1")
	down(pod)
	pod, p, writes = refresh(t, pod, at(time.Second))
	assert.Equal(t, completion.ReasonBatch, p.Reason, "with its new image it crashes, too: perhaps the resources help")
	assert.Equal(t, []string{"resize", "pod"}, writes)
	restarted(pod, "a", "a-2")
	_, p, _ = refresh(t, resized(pod), at(2*time.Second))
	assert.True(t, p.Complete, p.Message)

	pod = down(written(t, begin(t, runningPod(v1.Template, "w-1"), v1, v2, 0, at(0))))
	running.Status(pod, "a").State.Waiting.Reason = "ContainerCreating"
	pod, _, writes = refresh(t, pod, at(time.Second))
	assert.Empty(t, writes, "it is about to run with what the kubelet knew before")
	pod, _, _ = refresh(t, down(pod), at(time.Second))
	assert.Equal(t, "a:v2", pod.Spec.Containers[0].Image)
}

// The resize of one container does not hold up the others, unless they are of one batch with it.
func TestOnlyContainersThatAreResizedWait(t *testing.T) {
	v1, _ := grown()
	v2 := revisionOf("w-2", variant(v1.Template, func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].Resources.Requests = quantities("2", "1Gi")
		t.Spec.Containers[1].Image = "b:v2"
	}))
	pod := written(t, begin(t, runningPod(v1.Template, "w-1"), v1, v2, 0, at(0)))
	assert.Equal(t, "b:v2", pod.Spec.Containers[1].Image)
	assert.Equal(t, "2", pod.Spec.Containers[0].Resources.Requests.Cpu().String())
}

// An update that comes while a resize of the one before is under way waits for it as well.
func TestAnImageWaitsForTheResizeOfAnEarlierUpdate(t *testing.T) {
	v1, v3 := grown()
	v2 := revisionOf("w-2", variant(v1.Template, func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].Resources.Requests = quantities("2", "1Gi")
	}))
	v3.Name = "w-3"
	pod := written(t, begin(t, runningPod(v1.Template, "w-1"), v1, v2, 0, at(0)))
	pod = written(t, begin(t, pod, v2, v3, 0, at(time.Second)))
	assert.Equal(t, "a:v1", pod.Spec.Containers[0].Image)
	pod, _, _ = refresh(t, resized(pod), at(2*time.Second))
	assert.Equal(t, "a:v2", pod.Spec.Containers[0].Image)
}

// The grace period of the later update may end before the node has acted.
func TestAfterItsGraceAnImageWaitsForTheResizeOfAnEarlierUpdate(t *testing.T) {
	v1, v2 := grown()
	v3 := revisionOf("w-3", variant(v2.Template, func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = "a:v3" }))
	pod := written(t, begin(t, runningPod(v1.Template, "w-1"), v1, v2, 0, at(0)))
	pod = written(t, begin(t, pod, v2, v3, 1, at(time.Second)))

	pod, p, _ := refresh(t, pod, at(3*time.Second))
	assert.Equal(t, completion.ReasonBatch, p.Reason)
	assert.Equal(t, "a:v1", pod.Spec.Containers[0].Image)
	_, p, _ = refresh(t, pod, at(4*time.Second))
	assert.Equal(t, completion.ReasonKubelet, p.Reason)
	pod, p, _ = refresh(t, resized(pod), at(5*time.Second))
	assert.Equal(t, completion.ReasonBatch, p.Reason)
	assert.Equal(t, "a:v3", pod.Spec.Containers[0].Image)
	assert.Equal(t, "b:v2", pod.Spec.Containers[1].Image)
}

// The node agent's restarts wait like the kubelet's, and the order of launch priorities holds.
func TestResizesGoAheadInEachBatch(t *testing.T) {
	v1 := revisionOf("w-1", variant(templateOf("first", "second"), func(t *corev1.PodTemplateSpec) {
		t.Annotations = map[string]string{"cfg": "one"}
		t.Spec.Containers[0].Env = []corev1.EnvVar{envFrom("CFG", "cfg")}
		t.Spec.Containers[0].Resources.Requests = quantities("1", "")
		t.Spec.Containers[1].Resources.Requests = quantities("1", "")
	}))
	v2 := revisionOf("w-2", variant(v1.Template, func(t *corev1.PodTemplateSpec) {
		t.Annotations["cfg"] = "two"
		t.Spec.Containers[0].Resources.Requests = quantities("2", "")
		t.Spec.Containers[1].Resources.Requests = quantities("3", "")
		t.Spec.Containers[1].Image = "second:v2"
	}))
	pod := told(prioritised(runningPod(v1.Template, "w-1"), map[string]string{"first": "p_10", "second": "p_0"}))
	step := func(name, cfg, first, second, image string) {
		t.Helper()
		assert.Equal(t, cfg, pod.Annotations["cfg"], name)
		assert.Equal(t, first, pod.Spec.Containers[0].Resources.Requests.Cpu().String(), name)
		assert.Equal(t, second, pod.Spec.Containers[1].Resources.Requests.Cpu().String(), name)
		assert.Equal(t, image, pod.Spec.Containers[1].Image, name)
	}
	pod = written(t, begin(t, pod, v1, v2, 0, at(0)))
	step("the first one is resized", "one", "2", "1", "second:v1")
	pod, _, _ = refresh(t, resized(pod), at(0))
	step("then it is restarted", "two", "2", "1", "second:v1")
	assert.Equal(t, []string{"first"}, stateOf(t, pod).PreCheckBeforeNext.ContainersRequiredReady)
	restarted(pod, "first", "first-1")
	pod, _, _ = refresh(t, told(pod), at(time.Minute))
	step("the second one follows, and is resized", "two", "2", "3", "second:v1")
	pod, _, _ = refresh(t, resized(pod), at(time.Minute))
	step("then it gets its image", "two", "2", "3", "second:v2")
	restarted(pod, "second", "second-1")
	_, p, _ := refresh(t, pod, at(2*time.Minute))
	assert.True(t, p.Complete)
	assert.Len(t, stateOf(t, pod).ContainerBatchesRecord, 2)
	require.Empty(t, sets.List(record.Read(action.NewPodChange(pod, at(0))).State.Next().Containers()))
	assert.NotEmpty(t, pod.Annotations[contract.InPlaceUpdateStateAnnotation])
}

// A resize that comes while something restarts its container waits until that has been seen.
func TestAResizeWaitsForTheRestartOfAnEarlierUpdate(t *testing.T) {
	base := variant(templateOf("a", "b"), func(t *corev1.PodTemplateSpec) {
		t.Annotations = map[string]string{"cfg": "one"}
		t.Spec.Containers[0].Env = []corev1.EnvVar{envFrom("CFG", "cfg")}
		t.Spec.Containers[0].Resources.Requests = quantities("1", "1Gi")
	})
	more := func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Resources.Requests = quantities("2", "1Gi") }
	moreAndImage := func(t *corev1.PodTemplateSpec) {
		more(t)
		t.Spec.Containers[0].Image = "a:v3"
	}
	for name, tt := range map[string]struct {
		first, second func(*corev1.PodTemplateSpec)
		grace         int32
		image         string
	}{
		"an image":                               {func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = "a:v2" }, more, 0, "a:v2"},
		"an environment":                         {func(t *corev1.PodTemplateSpec) { t.Annotations["cfg"] = "two" }, more, 0, "a:v1"},
		"a restart as it is":                     {func(t *corev1.PodTemplateSpec) { t.Annotations[contract.RestartInPlaceAnnotation] = "1 a" }, more, 0, "a:v1"},
		"an image, and another one comes along":  {func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = "a:v2" }, moreAndImage, 0, "a:v3"},
		"an image, and another one with a grace": {func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = "a:v2" }, moreAndImage, 10, "a:v3"},
	} {
		t.Run(name, func(t *testing.T) {
			v1 := revisionOf("w-1", base)
			v2 := revisionOf("w-2", variant(base, tt.first))
			v3 := revisionOf("w-3", variant(v2.Template, tt.second))
			pod := written(t, begin(t, told(runningPod(v1.Template, "w-1")), v1, v2, 0, at(0)))
			c := begin(t, pod, v2, v3, tt.grace, at(time.Second))
			assert.NotContains(t, subresources(c), "resize")
			pod = written(t, c)
			assert.Equal(t, "1", pod.Spec.Containers[0].Resources.Requests.Cpu().String())
			pod.Status.ObservedGeneration = pod.Generation
			if tt.image != pod.Spec.Containers[0].Image {
				pod, _, _ = refresh(t, pod, at(time.Minute))
				pod.Status.ObservedGeneration = pod.Generation
			}
			assert.Equal(t, tt.image, pod.Spec.Containers[0].Image)
			pod, p, writes := refresh(t, pod, at(time.Minute))
			assert.NotEqual(t, completion.ReasonBatch, p.Reason)
			assert.Empty(t, writes)

			restarted(pod, "a", "a-1")
			pod, p, writes = refresh(t, told(pod), at(2*time.Minute))
			assert.Equal(t, completion.ReasonBatch, p.Reason, p.Message)
			assert.Equal(t, []string{"resize", "pod"}, writes)
			assert.Equal(t, "2", pod.Spec.Containers[0].Resources.Requests.Cpu().String())
			pod, p, _ = refresh(t, told(resized(pod)), at(3*time.Minute))
			assert.True(t, p.Complete, p.Message)
			assert.Equal(t, corev1.ConditionTrue, gateOf(pod))
		})
	}
}

// An image that can never run does not hold up the one that takes its place, though resources change with it.
func TestABadImageHoldsUpNoOtherOne(t *testing.T) {
	v1 := revisionOf("w-1", variant(templateOf("a"), resources(nil, quantities("1", ""))))
	v2 := revisionOf("w-2", variant(v1.Template, func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = "a:none" }))
	v3 := revisionOf("w-3", variant(v1.Template, func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].Image = "a:v3"
		t.Spec.Containers[0].Resources.Requests = quantities("2", "")
	}))
	pod := written(t, begin(t, runningPod(v1.Template, "w-1"), v1, v2, 0, at(0)))
	pod.Status.ObservedGeneration = pod.Generation
	running.Status(pod, "a").State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}
	pod = written(t, begin(t, pod, v2, v3, 0, at(time.Hour)))
	assert.Equal(t, "a:v3", pod.Spec.Containers[0].Image)
	restarted(pod, "a", "a-1")
	pod, _, writes := refresh(t, pod, at(time.Hour+time.Second))
	assert.Equal(t, []string{"resize", "pod"}, writes)
	_, p, _ := refresh(t, resized(pod), at(time.Hour+2*time.Second))
	assert.True(t, p.Complete, p.Message)
}
