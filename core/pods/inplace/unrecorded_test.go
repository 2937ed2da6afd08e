package inplace

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
)

// writtenBy has the server note who has written quantities of container a last, when the clock showed so much.
func writtenBy(pod *corev1.Pod, manager, resources string, clock time.Duration) *corev1.Pod {
	pod.ManagedFields = append(pod.ManagedFields, metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "resize", Time: new(at(clock)),
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{"f:resources":` + resources + `}}}}`),
	})
	return pod
}

const memoryFields = `{"f:limits":{"f:memory":{}},"f:requests":{".":{},"f:memory":{}}}`

// The second of the two writes of an update is lost, and the template is as it was before.
func TestAnUnrecordedResizeIsTakenBack(t *testing.T) {
	v1, v2 := limited("32Mi")
	c := begin(t, resized(runningPod(v1.Template, "w-1")), v1, v2, 0, at(0))
	require.Equal(t, []string{"resize", "pod"}, subresources(c))
	resize := c.Patches()[0]
	require.Equal(t, "flotilla-resize-2", resize.FieldManager)
	pod := writtenBy(resized(applied(t, c.Pod.DeepCopy(), []action.Patch{resize})), resize.FieldManager, memoryFields, 0)

	containers, wait := UnrecordedResize(pod, v1.Template, allGates, at(10*time.Second).Time)
	assert.Equal(t, []string{"a"}, containers)
	assert.Equal(t, 50*time.Second, wait)
	_, wait = UnrecordedResize(pod, v1.Template, allGates, at(time.Hour).Time)
	assert.LessOrEqual(t, wait, time.Duration(0))
	containers, _ = UnrecordedResize(pod, v1.Template, Options{}, at(0).Time)
	assert.Empty(t, containers, "nobody resizes")
	keeps := allGates
	keeps.KeepMemoryLimits = true
	containers, _ = UnrecordedResize(pod, v1.Template, keeps, at(0).Time)
	assert.Equal(t, []string{"a"}, containers, "the limit is raised")
	containers, _ = UnrecordedResize(writtenBy(runningPod(v1.Template, "w-2"), "flotilla-resize-1", memoryFields, 0), v2.Template, keeps, at(0).Time)
	assert.Empty(t, containers, "Kubernetes 1.33 does not lower it")

	c = begin(t, pod, v1, v1, 0, at(time.Second))
	assert.Equal(t, []string{"resize", "pod"}, subresources(c))
	pod = written(t, c)
	assert.Equal(t, "64Mi", pod.Spec.Containers[0].Resources.Limits.Memory().String())
	containers, _ = UnrecordedResize(pod, v1.Template, allGates, at(time.Second).Time)
	assert.Empty(t, containers)
}

// A webhook may answer each resize with resources of its own: the pod is asked once for each resize that was not recorded.
func TestAnUnrecordedResizeIsTakenBackOnce(t *testing.T) {
	v1, v2 := limited("32Mi")
	lost := writtenBy(resized(runningPod(v2.Template, "w-1")), "flotilla-resize-2", memoryFields, 0)
	pod := written(t, begin(t, lost, v1, v1, 0, at(time.Second)))
	pod.Spec.Containers[0].Resources = lost.Spec.Containers[0].Resources
	containers, _ := UnrecordedResize(resized(pod), v1.Template, allGates, at(time.Hour).Time)
	assert.Empty(t, containers)
	_, p, writes := refresh(t, pod, at(time.Hour))
	assert.True(t, p.Complete, p.Message)
	assert.Empty(t, writes)

	pod.ManagedFields = nil
	writtenBy(pod, "flotilla-resize-2", memoryFields, time.Minute)
	containers, _ = UnrecordedResize(pod, v1.Template, allGates, at(time.Hour).Time)
	assert.Equal(t, []string{"a"}, containers, "another one was lost since")
}

func TestResizesOfOthersStay(t *testing.T) {
	v1, v2 := limited("32Mi")
	for name, pod := range map[string]*corev1.Pod{
		"of an autoscaler":                 writtenBy(runningPod(v2.Template, "w-1"), "vpa", memoryFields, 0),
		"of the revision itself":           writtenBy(runningPod(v2.Template, "w-1"), "flotilla-resize-1", memoryFields, 0),
		"of other quantities":              writtenBy(runningPod(v2.Template, "w-1"), "flotilla-resize-2", `{"f:requests":{"f:cpu":{}}}`, 0),
		"to what the template says":        writtenBy(runningPod(v1.Template, "w-1"), "flotilla-resize-2", memoryFields, 0),
		"by a record that nobody can read": writtenBy(runningPod(v2.Template, "w-1"), "flotilla-resize-2", `[]`, 0),
	} {
		containers, _ := UnrecordedResize(pod, v1.Template, allGates, at(0).Time)
		assert.Empty(t, containers, name)
		c := begin(t, pod, v1, v1, 0, at(0))
		assert.NotContains(t, subresources(c), "resize", name)
	}
}

// An update from the revision that the label names to a third one has to know what the pod has.
func TestTheNextUpdateTakesAnUnrecordedResizeBack(t *testing.T) {
	v1, v2 := limited("32Mi")
	v3 := revisionOf("w-3", variant(v1.Template, func(t *corev1.PodTemplateSpec) { t.Spec.Containers[1].Image = "b:v3" }))
	pod := writtenBy(resized(runningPod(v2.Template, "w-1")), "flotilla-resize-2", memoryFields, 0)
	pod = answered(written(t, begin(t, pod, v1, v3, 0, at(time.Second))), at(time.Second))
	assert.Equal(t, resource.MustParse("64Mi"), pod.Spec.Containers[0].Resources.Limits[corev1.ResourceMemory])
	assert.Equal(t, "w-3", pod.Labels[contract.RevisionLabel])
}

// What is planned already is not taken back a second time.
func TestAPlannedUpdateTakesAnUnrecordedResizeAlong(t *testing.T) {
	v1, v2 := limited("32Mi", "a:v2")
	pod := writtenBy(resized(runningPod(v2.Template, "w-1")), "flotilla-resize-2", memoryFields, 0)
	u, err := Diff(v2, v1, allGates)
	require.NoError(t, err)
	c := action.NewPodChange(pod, at(0))
	u.Begin(c, 30)
	require.NotEmpty(t, c.Annotation(contract.InPlaceUpdateGraceAnnotation))
	containers, _ := UnrecordedResize(written(t, c), v1.Template, allGates, at(time.Hour).Time)
	assert.Empty(t, containers)
}
