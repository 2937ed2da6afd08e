package inplace

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/inplace/completion"
	"github.com/flotilla-project/flotilla/core/pods/inplace/running"
)

// meshed has native sidecar mesh, which reads annotation mesh-cfg and restarts for other cpu, and container app, which reads
// annotation cfg.
func meshed() *Revision {
	return revisionOf("w-1", variant(withInits(templateOf("app"), "mesh"), func(t *corev1.PodTemplateSpec) {
		t.Annotations = map[string]string{"cfg": "1", "mesh-cfg": "1"}
		t.Spec.Containers[0].Env = []corev1.EnvVar{envFrom("CFG", "cfg")}
		mesh := &t.Spec.InitContainers[1]
		mesh.Env, mesh.Resources.Requests = []corev1.EnvVar{envFrom("CFG", "mesh-cfg")}, quantities("1", "")
		mesh.ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.RestartContainer}}
	}))
}

// reconfigured gives container app another environment and sidecar mesh other cpu.
func reconfigured(name, cfg, cpu string) *Revision {
	return revisionOf(name, variant(meshed().Template, func(t *corev1.PodTemplateSpec) {
		t.Annotations["cfg"], t.Spec.InitContainers[1].Resources.Requests = cfg, quantities(cpu, "")
	}))
}

// injectedInto adds a container that the template does not have. It reads what app reads, and the node agent does not tell
// of its environment.
func injectedInto(pod *corev1.Pod) *corev1.Pod {
	c := corev1.Container{Name: "injected", Image: "injected:v1", Env: []corev1.EnvVar{envFrom("CFG", "cfg")}}
	pod.Spec.Containers = append(pod.Spec.Containers, c)
	pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, statusesOf([]corev1.Container{c})...)
	return told(pod, "injected")
}

// beginWithoutABatch begins an update of a pod of which a hand has changed what the sidecar reads. Its resize waits for the restart, and all else waits for the sidecar: the
// update begins without a batch.
func beginWithoutABatch(t *testing.T) *corev1.Pod {
	t.Helper()
	pod := ready(injectedInto(runningPod(meshed().Template, "w-1")), corev1.ConditionFalse, 0)
	pod.Annotations["mesh-cfg"], pod.Status.Conditions[2].Status = "9", corev1.ConditionFalse
	pod = written(t, begin(t, pod, meshed(), reconfigured("w-2", "2", "2"), 0, at(0)))
	require.Empty(t, stateOf(t, pod).ContainerBatchesRecord)
	require.Equal(t, "1", pod.Annotations["cfg"])
	return pod
}

func TestAnUpdateWithoutABatchAwaitsNoEnvironment(t *testing.T) {
	pod := beginWithoutABatch(t)
	_, p, _ := refresh(t, pod, at(time.Second))
	assert.Equal(t, "container mesh has not been restarted with its new environment yet", p.Message)

	restarted(pod, "mesh", "mesh-1")
	pod, p, writes := refresh(t, told(pod, "injected"), at(2*time.Second))
	require.Equal(t, completion.ReasonBatch, p.Reason, p.Message)
	assert.Equal(t, []string{"resize", "pod"}, writes)
	assert.Equal(t, []string{"mesh"}, stateOf(t, pod).ContainerBatchesRecord[0].Containers)
}

func TestAnUpdateWithoutABatchLeavesNothingToTheNext(t *testing.T) {
	pod := beginWithoutABatch(t)
	restarted(pod, "mesh", "mesh-1")
	pod = written(t, begin(t, told(pod, "injected"), reconfigured("w-2", "2", "2"), reconfigured("w-3", "3", "3"), 0, at(time.Second)))
	assert.Equal(t, []string{"mesh"}, stateOf(t, pod).ContainerBatchesRecord[0].Containers)
}

// Nothing of the plan was written.
func TestADroppedPlanAwaitsNothing(t *testing.T) {
	pod := injectedInto(runningPod(meshed().Template, "w-1"))
	pod = written(t, begin(t, pod, meshed(), reconfigured("w-2", "2", "2"), 10, at(0)))
	running.Status(pod, "mesh").Resources.Requests = quantities("500m", "") // of somebody else, and put off
	pod.Status.Conditions = append(pod.Status.Conditions, puttingOff()["deferred"])
	pod.Labels[contract.RevisionLabel] = "w-1"
	pod, p, _ := refresh(t, pod, at(time.Second))
	require.Equal(t, completion.ReasonSuperseded, p.Reason)

	pod, p, writes := refresh(t, pod, at(2*time.Second))
	assert.True(t, p.Complete, p.Message)
	assert.Equal(t, []string{"status"}, writes)
	assert.Equal(t, corev1.ConditionTrue, gateOf(pod))
}
