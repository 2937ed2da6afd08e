package gen

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

func TestPodIsDeterministicAndPending(t *testing.T) {
	pod := Pod("web-1", Label("app", "web"))
	assert.Equal(t, pod, Pod("web-1", Label("app", "web")))
	assert.NotEqual(t, pod.UID, Pod("web-2").UID)
	state := podstate.Of(pod, Epoch(), 0)
	assert.True(t, state.Active)
	assert.False(t, state.Assigned || state.Ready)
}

func TestReadyPodIsAvailable(t *testing.T) {
	pod := Pod("web-1", Image("side", "log:1"), Ready(Epoch()), Revision("web-abc"), Lifecycle(contract.LifecycleNormal), Restarts(3))
	state := podstate.Of(pod, Epoch().Add(time.Minute), 60)
	assert.True(t, state.Ready && state.Available && state.Assigned)
	assert.Equal(t, "abc", state.Revision)
	assert.Equal(t, int32(3), state.Restarts)
	require.Len(t, pod.Status.ContainerStatuses, 2)
	assert.True(t, pod.Status.ContainerStatuses[1].Ready)
	assert.Equal(t, "log:1", pod.Status.ContainerStatuses[1].Image)
}

func TestOptionsApplyInOrder(t *testing.T) {
	pod := Pod("web-1", Ready(Epoch()), OnNode("n2"), NotReady(Epoch().Add(time.Second)), Image("main", "app:2"))
	assert.Equal(t, "n2", pod.Spec.NodeName)
	require.Len(t, pod.Spec.Containers, 1)
	assert.Equal(t, "app:2", pod.Spec.Containers[0].Image)
	assert.Equal(t, corev1.ConditionFalse, podstate.Condition(pod, corev1.PodReady).Status)
	assert.Len(t, pod.Status.Conditions, 3)
}

func TestTemplateAndItsPodsShareNothing(t *testing.T) {
	template := Template(Label("app", "web"), ReadinessGate(contract.InPlaceUpdateReady))
	assert.Empty(t, template.Name)
	pod := Pod("web-1", FromTemplate(template), Label("app", "other"), Image("main", "app:2"))
	assert.True(t, podstate.HasReadinessGate(pod, contract.InPlaceUpdateReady))
	assert.Equal(t, "web", template.Labels["app"])
	assert.Equal(t, "app:1", template.Spec.Containers[0].Image)
}

func TestOwnedBy(t *testing.T) {
	ref := Pod("web-1", OwnedBy(Pod("parent"))).OwnerReferences[0]
	assert.Equal(t, "Pod", ref.Kind)
	assert.Equal(t, "apps.kruise.io/v1beta1", ref.APIVersion)
	assert.Equal(t, UID("parent"), ref.UID)
	assert.True(t, *ref.Controller)
}

func TestClaim(t *testing.T) {
	claim := Claim("data", "2Gi", func(c *corev1.PersistentVolumeClaim) { c.Namespace = Namespace })
	assert.Equal(t, "2Gi", claim.Spec.Resources.Requests.Storage().String())
	assert.Equal(t, Namespace, claim.Namespace)
}
