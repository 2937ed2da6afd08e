package inplace

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/pods/inplace/completion"
)

func TestImageUpdateCostsThreeWrites(t *testing.T) {
	v1 := templateOf("app", "log")
	v2 := variant(v1, func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = "app:v2" })
	pod := runningPod(v1, "w-1")

	c := begin(t, pod, revisionOf("w-1", v1), revisionOf("w-2", v2), 0, at(0))
	assert.Equal(t, []string{"pod"}, subresources(c), "the pod is out of service already")
	pod = written(t, c)
	assert.Equal(t, "app:v2", pod.Spec.Containers[0].Image)
	assert.Equal(t, corev1.ConditionFalse, gateOf(pod))
	assert.JSONEq(t, `{"revision":"w-2","updateTimestamp":"2026-01-01T12:00:00Z","updateImages":true,
		"lastContainerStatuses":{"app":{"imageID":"registry/app:v1@sha256:app:v1","containerID":"app-0"}},
		"containerBatchesRecord":[{"timestamp":"2026-01-01T12:00:00Z","containers":["app"]}]}`,
		pod.Annotations["apps.kruise.io/inplace-update-state"])

	pod, p, writes := refresh(t, pod, at(time.Second))
	assert.Equal(t, completion.ReasonKubelet, p.Reason)
	assert.Empty(t, writes)
	pod.Status.ObservedGeneration = pod.Generation
	pod, p, writes = refresh(t, pod, at(time.Second))
	assert.Equal(t, completion.ReasonContainer, p.Reason, "the observed generation moves before the container")
	assert.Empty(t, writes)

	restarted(pod, "app", "app-1")
	pod, p, writes = refresh(t, pod, at(2*time.Second))
	assert.True(t, p.Complete)
	assert.Equal(t, []string{"status"}, writes)
	assert.Equal(t, corev1.ConditionTrue, gateOf(pod))
	_, p, writes = refresh(t, pod, at(3*time.Second))
	assert.True(t, p.Complete)
	assert.Empty(t, writes)
}
