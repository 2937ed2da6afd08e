package podcache_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/gen"

	"github.com/flotilla-project/flotilla/daemon/internal/podcache"
)

func TestTrimKeepsWhatPlansRead(t *testing.T) {
	barrier := corev1.EnvVar{Name: contract.ContainerBarrierEnv, Value: "x"}
	pod := gen.Pod("web", gen.Label("app", "web"), gen.OwnedBy(gen.Pod("owner")), gen.Gate(contract.KruisePodReady),
		gen.Annotation(contract.ContainerLaunchPriorityCompletedAnnotation, "true"), gen.Annotation("note", "long"),
		gen.Image("main", "app:1"), gen.Image("side", "side:1"), gen.Ready(gen.Epoch()),
		gen.Condition(corev1.PodScheduled, corev1.ConditionTrue, gen.Epoch()),
		gen.Change(func(pod *corev1.Pod) {
			pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "SECRET", Value: "s"}, barrier}
			pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "proxy", ContainerID: "containerd://p", Image: "proxy"}}
		}))
	before := pod.DeepCopy()
	trimmed, err := podcache.Trim(pod)
	require.NoError(t, err)
	assert.Equal(t, before, pod)
	kept := trimmed.(*corev1.Pod)
	assert.Equal(t, []string{pod.Name, string(pod.UID), pod.ResourceVersion}, []string{kept.Name, string(kept.UID), kept.ResourceVersion})
	assert.Equal(t, pod.OwnerReferences, kept.OwnerReferences)
	assert.Equal(t, map[string]string{contract.ContainerLaunchPriorityCompletedAnnotation: "true"}, kept.Annotations)
	assert.Empty(t, kept.Labels)
	assert.Equal(t, []corev1.Container{{Name: "main", Env: []corev1.EnvVar{barrier}}}, kept.Spec.Containers)
	assert.Equal(t, pod.Spec.ReadinessGates, kept.Spec.ReadinessGates)
	assert.Equal(t, pod.Spec.NodeName, kept.Spec.NodeName)
	assert.Len(t, kept.Status.Conditions, len(pod.Status.Conditions)-1)
	assert.Equal(t, "containerd://p", kept.Status.InitContainerStatuses[0].ContainerID)
	assert.Empty(t, kept.Status.InitContainerStatuses[0].Image)
	assert.Len(t, kept.Status.ContainerStatuses, 2)
	assert.Equal(t, pod.Status.ContainerStatuses[0].State, kept.Status.ContainerStatuses[0].State)

	mark := cache.DeletedFinalStateUnknown{Key: "default/web"}
	same, err := podcache.Trim(mark)
	require.NoError(t, err)
	assert.Equal(t, mark, same)
}
