package inplace

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/pods/podspec"
)

// images gives the containers of a template other images, by name.
func images(t *corev1.PodTemplateSpec, images map[string]string) *corev1.PodTemplateSpec {
	return variant(t, func(t *corev1.PodTemplateSpec) {
		for _, c := range podspec.LongRunning(&t.Spec) {
			if image, ok := images[c.Name]; ok {
				c.Image = image
			}
		}
	})
}

func imagesOf(pod *corev1.Pod) []string {
	var list []string
	for _, c := range podspec.LongRunning(&pod.Spec) {
		list = append(list, c.Image)
	}
	return list
}

func TestNativeSidecarsChangeOneAfterTheOtherBeforeContainers(t *testing.T) {
	v1 := revisionOf("w-1", withInits(templateOf("app"), "mesh", "log"))
	v2 := revisionOf("w-2", images(v1.Template, map[string]string{"mesh": "mesh:v2", "log": "log:v2", "app": "app:v2"}))
	pod := written(t, begin(t, runningPod(v1.Template, "w-1"), v1, v2, 0, at(0)))
	assert.Equal(t, []string{"mesh:v2", "log:v1", "app:v1"}, imagesOf(pod))
	assert.Equal(t, corev1.ConditionFalse, gateOf(pod))
	assert.Equal(t, map[string]string{"log": "log:v2", "app": "app:v2"}, stateOf(t, pod).NextContainerImages)

	_, p, _ := refresh(t, pod, at(time.Second))
	assert.Equal(t, ReasonKubelet, p.Reason)
	restarted(pod, "mesh", "mesh-1")
	statusOf(pod, "mesh").Ready, statusOf(pod, "mesh").Started = false, new(false)
	_, p, writes := refresh(t, pod, at(time.Second))
	assert.Equal(t, ReasonContainer, p.Reason, "it has not passed its startup probe")
	assert.Contains(t, p.Message, "mesh")
	assert.Empty(t, writes)

	statusOf(pod, "mesh").Started = new(true)
	pod, p, writes = refresh(t, pod, at(2*time.Second))
	assert.Equal(t, ReasonBatch, p.Reason, "it may become ready with the containers that come after it")
	assert.Equal(t, []string{"pod"}, writes)
	assert.Equal(t, []string{"mesh:v2", "log:v2", "app:v1"}, imagesOf(pod))

	restarted(pod, "log", "log-1")
	pod, _, _ = refresh(t, pod, at(3*time.Second))
	assert.Equal(t, []string{"mesh:v2", "log:v2", "app:v2"}, imagesOf(pod))
	restarted(pod, "app", "app-1")
	pod, p, writes = refresh(t, pod, at(4*time.Second))
	assert.True(t, p.Complete)
	assert.Equal(t, []string{"status"}, writes)
	assert.Equal(t, corev1.ConditionTrue, gateOf(pod))
	assert.Equal(t, "setup:v1", pod.Spec.InitContainers[0].Image)
}

func TestABadImageOfANativeSidecarIsTakenBack(t *testing.T) {
	v1 := revisionOf("w-1", withInits(templateOf("app"), "mesh"))
	v2 := revisionOf("w-2", images(v1.Template, map[string]string{"mesh": "mesh:none", "app": "app:v2"}))
	pod := written(t, begin(t, runningPod(v1.Template, "w-1"), v1, v2, 0, at(0)))
	pod.Status.ObservedGeneration = pod.Generation
	status := statusOf(pod, "mesh")
	status.State, status.Ready = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}, false
	_, p, writes := refresh(t, pod, at(time.Hour))
	assert.Equal(t, ReasonContainer, p.Reason)
	assert.Empty(t, writes)

	pod = written(t, begin(t, pod, v2, v1, 0, at(time.Hour)))
	assert.Equal(t, []string{"mesh:v1", "app:v1"}, imagesOf(pod))
	restarted(pod, "mesh", "mesh-1")
	_, p, _ = refresh(t, pod, at(time.Hour+time.Second))
	assert.True(t, p.Complete, "the container was never touched")
}

// The kubelet looks at the image of a native sidecar only once that has passed its startup probe: one that was started
// anew with the old image may go on for a while.
func TestAnotherTagOfANativeSidecarIsBelievedOnceItHasStarted(t *testing.T) {
	v1 := revisionOf("w-1", withInits(templateOf("app"), "mesh"))
	v2 := revisionOf("w-2", images(v1.Template, map[string]string{"mesh": "mesh:latest"}))
	pod := written(t, begin(t, runningPod(v1.Template, "w-1"), v1, v2, 0, at(0)))
	restarted(pod, "mesh", "mesh-1")
	status := statusOf(pod, "mesh")
	status.Image, status.ImageID, status.Ready, status.Started = "mesh:v1", imageIDOf("mesh:v1"), false, new(false)
	_, p, _ := refresh(t, pod, at(unsureTime))
	assert.Equal(t, ReasonContainer, p.Reason)
	assert.Contains(t, p.Message, "startup probe")
	status.Ready, status.Started = true, new(true)
	_, p, _ = refresh(t, pod, at(unsureTime))
	assert.True(t, p.Complete)
}

// An init container that ends is never written, whatever the pod's record says or the pod has made of a sidecar.
func TestInitContainersThatEndAreLeftAlone(t *testing.T) {
	v1 := revisionOf("w-1", withInits(templateOf("app"), "mesh"))
	v2 := revisionOf("w-2", images(v1.Template, map[string]string{"mesh": "mesh:v2"}))
	pod := runningPod(v1.Template, "w-1")
	pod.Spec.InitContainers[1].RestartPolicy = nil
	u, err := Diff(v1, v2, allGates)
	require.NoError(t, err)
	assert.False(t, u.Interrupts(pod))
	pod = written(t, begin(t, pod, v1, v2, 0, at(0)))
	assert.Equal(t, "mesh:v1", pod.Spec.InitContainers[1].Image)
	_, p, _ := refresh(t, pod, at(0))
	assert.True(t, p.Complete)
}
