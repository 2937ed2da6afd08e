package inplace_test

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
	"github.com/flotilla-project/flotilla/core/pods/inplace"
	"github.com/flotilla-project/flotilla/core/pods/lifecycle"
)

// normalPod is in service under revision w-1 and has both readiness gates.
func normalPod(t *corev1.PodTemplateSpec) *corev1.Pod {
	pod := &corev1.Pod{Spec: *t.Spec.DeepCopy()}
	pod.Labels = map[string]string{contract.RevisionLabel: "w-1", contract.LifecycleStateLabel: contract.LifecycleNormal}
	pod.Spec.NodeName = "node"
	for _, readinessGate := range []corev1.PodConditionType{contract.InPlaceUpdateReady, contract.KruisePodReady} {
		pod.Spec.ReadinessGates = append(pod.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: readinessGate})
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: readinessGate, Status: corev1.ConditionTrue})
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "app", Image: "app:v1", ImageID: "app@sha256:1", ContainerID: "app-0", Ready: true,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}}
	return pod
}

func template(image, cpu string) *corev1.PodTemplateSpec {
	return &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "app", Image: image,
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
	}}}}
}

// update does what a workload does in one pass to a pod that is to be updated.
func update(t *testing.T, pod *corev1.Pod, from, to *corev1.PodTemplateSpec) *action.PodChange {
	t.Helper()
	o := inplace.Options{Resize: true}
	u, err := inplace.Diff(&inplace.Revision{Name: "w-1", Template: from}, &inplace.Revision{Name: "w-2", Template: to}, o)
	require.NoError(t, err)
	c := action.NewPodChange(pod, metav1.NewTime(time.Unix(0, 0)))
	require.True(t, inplace.Refresh(c, o).Complete)
	require.True(t, lifecycle.BeginUpdate(c, nil))
	u.Begin(c, 0)
	c.SetLabel(contract.RevisionLabel, u.Revision())
	if !u.Interrupts(pod) {
		lifecycle.Refresh(c, nil, true)
	}
	return c
}

func TestWritesOfAnImageUpdate(t *testing.T) {
	pod := normalPod(template("app:v1", "1"))
	c := update(t, pod, template("app:v1", "1"), template("app:v2", "1"))
	patches := c.Patches()
	require.Len(t, patches, 2)
	assert.Equal(t, "status", patches[0].Subresource)
	assert.NotContains(t, patches[0].Body, "metadata")
	assert.Empty(t, patches[1].Subresource)
	assert.Equal(t, map[string]any{contract.RevisionLabel: "w-2", contract.LifecycleStateLabel: contract.LifecycleUpdating},
		patches[1].Body["metadata"].(map[string]any)["labels"])

	updated := pod.DeepCopy()
	updated.Labels[contract.LifecycleStateLabel] = contract.LifecycleUpdating
	updated.Annotations = map[string]string{contract.InPlaceUpdateStateAnnotation: c.Annotation(contract.InPlaceUpdateStateAnnotation)}
	updated.Spec.Containers[0].Image = "app:v2"
	updated.Status.Conditions[0].Status = corev1.ConditionFalse
	updated.Status.ContainerStatuses[0].ContainerID, updated.Status.ContainerStatuses[0].ImageID = "app-1", "app@sha256:2"
	c = action.NewPodChange(updated, metav1.NewTime(time.Unix(9, 0)))
	p := inplace.Refresh(c, inplace.Options{})
	lifecycle.Refresh(c, nil, p.Complete)
	patches = c.Patches()
	require.Len(t, patches, 1, "condition, label and timestamp are one write")
	assert.Equal(t, "status", patches[0].Subresource)
	assert.Equal(t, map[string]any{contract.LifecycleStateLabel: contract.LifecycleNormal}, patches[0].Body["metadata"].(map[string]any)["labels"])
}

func TestWritesOfAResize(t *testing.T) {
	c := update(t, normalPod(template("app:v1", "1")), template("app:v1", "1"), template("app:v1", "2"))
	patches := c.Patches()
	require.Len(t, patches, 2, "and none at the end: the pod was in service all the time")
	assert.Equal(t, "resize", patches[0].Subresource)
	assert.Equal(t, map[string]any{contract.RevisionLabel: "w-2"}, patches[1].Body["metadata"].(map[string]any)["labels"],
		"to Updating and back to Normal in one pass is no change")
}

func TestWritesOfALabel(t *testing.T) {
	to := template("app:v1", "1")
	to.Labels = map[string]string{"version": "b"}
	c := update(t, normalPod(template("app:v1", "1")), template("app:v1", "1"), to)
	require.Len(t, c.Patches(), 1)
	assert.NotContains(t, c.Annotation(contract.LifecycleTimestampAnnotation), "1970")
}
