package launch_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/testing/await"

	"github.com/flotilla-project/flotilla/daemon/internal/podmarks"
)

// newPod returns a pod on a node whose containers log, main and job have priorities 10, 0 and -5.
func newPod(namespace string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}, Spec: corev1.PodSpec{NodeName: "node-1"}}
	for name, priority := range map[string]int{"main": 0, "log": 10, "job": -5} {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name: name, Image: "app:1", Env: []corev1.EnvVar{podmarks.Barrier("web", priority)},
		})
	}
	return pod
}

func create(t *testing.T, c client.Client, o client.Object) {
	t.Helper()
	require.NoError(t, c.Create(t.Context(), o))
}

// becomeReady is what the kubelet writes.
func becomeReady(t *testing.T, c client.Client, pod *corev1.Pod, containers ...string) {
	t.Helper()
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
	before := pod.DeepCopy()
	pod.Status.ContainerStatuses = nil
	for _, name := range containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: name, Ready: true})
	}
	require.NoError(t, c.Status().Patch(t.Context(), pod, client.MergeFrom(before)))
}

// opened waits until the pod's ConfigMap has exactly these keys.
func opened(t *testing.T, c client.Client, pod *corev1.Pod, keys ...string) *corev1.ConfigMap {
	t.Helper()
	m := &corev1.ConfigMap{}
	await.Until(t, func(collect *assert.CollectT) {
		require.NoError(collect, c.Get(t.Context(), client.ObjectKey{Namespace: pod.Namespace, Name: "web-barrier"}, m))
		assert.Equal(collect, keys, slices.Sorted(maps.Keys(m.Data)))
		assert.True(collect, metav1.IsControlledBy(m, pod))
	})
	return m
}

// ownedBy returns a ConfigMap of the pod's name, as if another pod, or nobody, had made it.
func ownedBy(namespace string, owner *corev1.Pod, keys ...string) *corev1.ConfigMap {
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web-barrier"}, Data: map[string]string{}}
	if owner != nil {
		m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("Pod"))}
	}
	for _, key := range keys {
		m.Data[key] = "true"
	}
	return m
}

func TestContainersStartInOrder(t *testing.T) {
	c := givenController(t)
	audit := env.Audit(t)
	pod := newPod(env.Namespace(t))
	create(t, c, pod)
	opened(t, c, pod, "p_10")
	becomeReady(t, c, pod, "log")
	opened(t, c, pod, "p_0", "p_10")
	becomeReady(t, c, pod, "log", "main")
	opened(t, c, pod, "p_-5", "p_0", "p_10")
	await.Until(t, func(collect *assert.CollectT) {
		require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
		assert.Equal(collect, "true", pod.Annotations[contract.ContainerLaunchPriorityCompletedAnnotation])
	})
	becomeReady(t, c, pod, "log", "main", "job")
	becomeReady(t, c, pod, "log")

	require.NoError(t, c.Delete(t.Context(), pod))
	await.Until(t, func(collect *assert.CollectT) {
		err := c.Get(t.Context(), client.ObjectKey{Namespace: pod.Namespace, Name: "web-barrier"}, &corev1.ConfigMap{})
		assert.True(collect, apierrors.IsNotFound(err), "the next pod of the name must not find it")
	})
	writes := audit.Writes(t, userAgent)
	assert.Equal(t, 1, writes["create configmaps"])
	assert.Equal(t, 2, writes["patch configmaps"])
	assert.Equal(t, 1, writes["patch pods"])
	assert.Equal(t, 1, writes["delete configmaps"])
}

func TestAFormerPodsBarriersAreClosed(t *testing.T) {
	c := givenController(t)
	namespace := env.Namespace(t)
	former := newPod(namespace)
	former.UID = "former"
	create(t, c, ownedBy(namespace, former, "p_10", "p_0", "p_-5"))
	pod := newPod(namespace)
	create(t, c, pod)
	opened(t, c, pod, "p_10")
}

// A pod that another operator has begun to start is taken over: its ConfigMap has no label.
func TestABegunPodIsTakenOver(t *testing.T) {
	env.Need(t)
	c := env.Client(t)
	pod := newPod(env.Namespace(t))
	create(t, c, pod)
	create(t, c, ownedBy(pod.Namespace, pod, "p_10"))
	becomeReady(t, c, pod, "log")
	givenController(t)
	m := opened(t, c, pod, "p_0", "p_10")
	assert.Contains(t, m.Labels, podmarks.BarrierLabel)
}

func TestSomebodysConfigMapIsLeftAlone(t *testing.T) {
	c := givenController(t)
	namespace := env.Namespace(t)
	m := ownedBy(namespace, nil, "setting")
	create(t, c, m)
	pod := newPod(namespace)
	create(t, c, pod)
	await.Until(t, func(collect *assert.CollectT) {
		list := &eventsv1.EventList{}
		require.NoError(collect, c.List(t.Context(), list, client.InNamespace(namespace)))
		if assert.NotEmpty(collect, list.Items) {
			assert.Equal(collect, "FailedOpenLaunchBarrier", list.Items[0].Reason)
			assert.Equal(collect, pod.UID, list.Items[0].Regarding.UID)
		}
	})
	version := m.ResourceVersion
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(m), m))
	assert.Equal(t, version, m.ResourceVersion)
}

func TestGatesOfOtherWorkloadsAreAnswered(t *testing.T) {
	c := givenController(t)
	namespace := env.Namespace(t)
	audit := env.Audit(t)
	gated := func(name string) *corev1.Pod {
		pod := newPod(namespace)
		pod.Name, pod.Spec.Containers = name, []corev1.Container{{Name: "main", Image: "app:1"}}
		pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: contract.KruisePodReady}}
		return pod
	}
	ours := gated("ours")
	ours.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Name: "web", UID: "x", Controller: new(true)}}
	create(t, c, ours)
	pod := gated("theirs")
	create(t, c, pod)
	await.Until(t, func(collect *assert.CollectT) {
		require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
		condition := podstate.Condition(pod, contract.KruisePodReady)
		if assert.NotNil(collect, condition) {
			assert.Equal(collect, corev1.ConditionTrue, condition.Status)
		}
	})
	assert.Equal(t, map[string]int{"patch pods/status": 1}, audit.Writes(t, userAgent))
}
