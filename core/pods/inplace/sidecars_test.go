package inplace

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/inplace/completion"
	"github.com/flotilla-project/flotilla/core/pods/inplace/record"
	"github.com/flotilla-project/flotilla/core/pods/inplace/running"
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
	assert.Equal(t, completion.ReasonKubelet, p.Reason)
	restarted(pod, "mesh", "mesh-1")
	running.Status(pod, "mesh").Ready, running.Status(pod, "mesh").Started = false, new(false)
	_, p, writes := refresh(t, pod, at(time.Second))
	assert.Equal(t, completion.ReasonContainer, p.Reason, "it has not passed its startup probe")
	assert.Contains(t, p.Message, "mesh")
	assert.Empty(t, writes)

	running.Status(pod, "mesh").Started = new(true)
	pod, p, writes = refresh(t, pod, at(2*time.Second))
	assert.Equal(t, completion.ReasonBatch, p.Reason, "it may become ready with the containers that come after it")
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
	status := running.Status(pod, "mesh")
	status.State, status.Ready = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}, false
	_, p, writes := refresh(t, pod, at(time.Hour))
	assert.Equal(t, completion.ReasonContainer, p.Reason)
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
	status := running.Status(pod, "mesh")
	status.Image, status.ImageID, status.Ready, status.Started = "mesh:v1", imageIDOf("mesh:v1"), false, new(false)
	_, p, _ := refresh(t, pod, at(completion.UnsureTime))
	assert.Equal(t, completion.ReasonContainer, p.Reason)
	assert.Contains(t, p.Message, "startup probe")
	status.Ready, status.Started = true, new(true)
	_, p, _ = refresh(t, pod, at(completion.UnsureTime))
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

// askingSidecars has native sidecars mesh and log and container app; mesh and app read annotations of their own. It asks
// for restarts by the value.
func askingSidecars(name, mesh, app, restart string) *Revision {
	return revisionOf(name, variant(withInits(templateOf("app"), "mesh", "log"), func(t *corev1.PodTemplateSpec) {
		t.Annotations = map[string]string{"mesh-cfg": mesh, "app-cfg": app}
		if restart != "" {
			t.Annotations[contract.RestartInPlaceAnnotation] = restart
		}
		t.Spec.InitContainers[1].Env = []corev1.EnvVar{envFrom("CFG", "mesh-cfg")}
		t.Spec.Containers[0].Env = []corev1.EnvVar{envFrom("CFG", "app-cfg")}
	}))
}

func TestNativeSidecarsRestartAsTheyAreOneAfterTheOther(t *testing.T) {
	from := askingSidecars("w-1", "a", "a", "")
	for value, order := range map[string][]string{"1": {"mesh", "log", "app"}, "1 app log": {"log", "app"}, "1 mesh": {"mesh"}} {
		t.Run(value, func(t *testing.T) {
			to := askingSidecars("w-2", "a", "a", value)
			pod := written(t, begin(t, told(runningPod(from.Template, "w-1")), from, to, 0, at(0)))
			for i, name := range order {
				assert.Equal(t, map[string]string{name: name + "-0"}, record.RestartsUnderWay(pod))
				restarted(pod, name, name+"-1")
				told(pod)
				if i+1 == len(order) {
					break
				}
				running.Status(pod, name).Ready, running.Status(pod, name).Started = false, new(false)
				_, p, writes := refresh(t, pod, at(time.Second))
				assert.Equal(t, completion.ReasonNotReady, p.Reason, "it has not passed its startup probe")
				assert.Empty(t, writes)
				running.Status(pod, name).Started = new(true)
				pod, p, _ = refresh(t, pod, at(time.Second))
				assert.Equal(t, completion.ReasonBatch, p.Reason)
			}
			_, p, _ := refresh(t, pod, at(time.Minute))
			assert.True(t, p.Complete, p.Message)
		})
	}
}

func TestANativeSidecarThatTheAgentDoesNotKnowIsNotRestarted(t *testing.T) {
	from := askingSidecars("w-1", "a", "a", "")
	old := told(runningPod(from.Template, "w-1"), "mesh")
	for name, to := range map[string]*Revision{
		"as it is":    askingSidecars("w-2", "a", "a", "1"),
		"environment": askingSidecars("w-2", "b", "a", ""),
	} {
		u, err := Diff(from, to, allGates)
		require.NoError(t, err, name)
		var missing *NodeAgentMissingError
		require.ErrorAs(t, u.Check(old), &missing, name)
		assert.Equal(t, "mesh", missing.Container, name)
		require.NoError(t, u.Check(told(runningPod(from.Template, "w-1"))), name)
	}
	u, err := Diff(from, askingSidecars("w-2", "a", "b", "1 app"), allGates)
	require.NoError(t, err)
	require.NoError(t, u.Check(old), "containers do without")
}

// Environments follow the order of the containers, and images come along with them.
func TestTheEnvironmentOfANativeSidecarGoesFirst(t *testing.T) {
	from, to := askingSidecars("w-1", "a", "a", ""), askingSidecars("w-2", "b", "b", "")
	to.Template.Spec.InitContainers[2].Image = "log:v2"
	pod := written(t, begin(t, told(runningPod(from.Template, "w-1")), from, to, 0, at(0)))
	step := func(mesh, log, app string) {
		t.Helper()
		assert.Equal(t, []string{mesh, log, app}, []string{pod.Annotations["mesh-cfg"], pod.Spec.InitContainers[2].Image, pod.Annotations["app-cfg"]})
	}
	step("b", "log:v1", "a")
	restarted(pod, "mesh", "mesh-1")
	pod, _, _ = refresh(t, told(pod), at(time.Minute))
	step("b", "log:v2", "a")
	restarted(pod, "log", "log-1")
	pod, _, _ = refresh(t, told(pod), at(2*time.Minute))
	step("b", "log:v2", "b")
	_, p, _ := refresh(t, pod, at(3*time.Minute))
	assert.Equal(t, completion.ReasonContainer, p.Reason)
	restarted(pod, "app", "app-1")
	_, p, _ = refresh(t, told(pod), at(4*time.Minute))
	assert.True(t, p.Complete, p.Message)
}

// One key is written once, so that all that read it restart together.
func TestContainersThatReadTheKeyOfANativeSidecarComeAlong(t *testing.T) {
	from, to := askingSidecars("w-1", "a", "a", ""), askingSidecars("w-2", "b", "a", "")
	for _, r := range []*Revision{from, to} {
		r.Template.Spec.Containers[0].Env = []corev1.EnvVar{envFrom("CFG", "mesh-cfg")}
	}
	to.Template.Spec.InitContainers[2].Image = "log:v2"
	pod := written(t, begin(t, told(runningPod(from.Template, "w-1")), from, to, 0, at(0)))
	assert.Equal(t, []string{"app", "mesh"}, stateOf(t, pod).ContainerBatchesRecord[0].Containers)
	assert.Equal(t, "log:v1", pod.Spec.InitContainers[2].Image)
}

func TestResourcesOfNativeSidecars(t *testing.T) {
	v1 := revisionOf("w-1", variant(withInits(templateOf("app"), "mesh", "log"), func(t *corev1.PodTemplateSpec) {
		for _, c := range podspec.LongRunning(&t.Spec) {
			c.Resources.Requests = quantities("1", "")
		}
	}))
	to := func(change func(*corev1.PodTemplateSpec)) *Revision {
		return revisionOf("w-2", variant(v1.Template, change))
	}
	cpuOf := func(pod *corev1.Pod) []string {
		var list []string
		for _, c := range podspec.LongRunning(&pod.Spec) {
			list = append(list, c.Resources.Requests.Cpu().String())
		}
		return list
	}
	t.Run("change with those of containers, in service", func(t *testing.T) {
		v2 := to(func(t *corev1.PodTemplateSpec) {
			t.Spec.InitContainers[1].Resources.Requests = quantities("2", "")
			t.Spec.Containers[0].Resources.Requests = quantities("500m", "")
		})
		c := begin(t, runningPod(v1.Template, "w-1"), v1, v2, 0, at(0))
		assert.Equal(t, []string{"resize", "pod"}, subresources(c))
		pod := written(t, c)
		assert.Equal(t, []string{"2", "1", "500m"}, cpuOf(pod))
		pod.Status.ObservedGeneration = pod.Generation
		_, p, _ := refresh(t, pod, at(time.Second))
		assert.Equal(t, completion.ReasonResize, p.Reason)
		_, p, _ = refresh(t, resized(pod), at(2*time.Second))
		assert.True(t, p.Complete, p.Message)
	})
	t.Run("come before its image, and that before containers", func(t *testing.T) {
		v2 := to(func(t *corev1.PodTemplateSpec) {
			t.Spec.InitContainers[1].Resources.Requests = quantities("2", "")
			t.Spec.InitContainers[1].Image, t.Spec.Containers[0].Image = "mesh:v2", "app:v2"
		})
		pod := written(t, begin(t, runningPod(v1.Template, "w-1"), v1, v2, 0, at(0)))
		assert.Equal(t, []string{"2", "1", "1"}, cpuOf(pod))
		assert.Equal(t, []string{"mesh:v1", "log:v1", "app:v1"}, imagesOf(pod))
		pod, _, _ = refresh(t, resized(pod), at(time.Second))
		assert.Equal(t, []string{"mesh:v2", "log:v1", "app:v1"}, imagesOf(pod))
		restarted(pod, "mesh", "mesh-1")
		pod, _, _ = refresh(t, pod, at(2*time.Second))
		assert.Equal(t, []string{"mesh:v2", "log:v1", "app:v2"}, imagesOf(pod))
		restarted(pod, "app", "app-1")
		_, p, _ := refresh(t, pod, at(3*time.Second))
		assert.True(t, p.Complete, p.Message)
	})
	t.Run("that the node puts off hold up nothing", func(t *testing.T) {
		v2 := to(func(t *corev1.PodTemplateSpec) {
			t.Spec.InitContainers[1].Resources.Requests = quantities("2", "")
			t.Spec.InitContainers[1].Image, t.Spec.Containers[0].Image = "mesh:v2", "app:v2"
			t.Spec.Containers[0].Resources.Requests = quantities("500m", "")
		})
		pod := written(t, begin(t, runningPod(v1.Template, "w-1"), v1, v2, 0, at(0)))
		deferred := corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonDeferred}
		pod.Status.Conditions = append(pod.Status.Conditions, deferred)
		pod.Status.ObservedGeneration = pod.Generation
		pod, _, _ = refresh(t, pod, at(time.Second))
		assert.Equal(t, []string{"mesh:v2", "log:v1", "app:v1"}, imagesOf(pod))
		restarted(pod, "mesh", "mesh-1")
		pod, p, _ := refresh(t, pod, at(2*time.Second))
		assert.Equal(t, completion.ReasonBatch, p.Reason, "what a container gives is what the sidecar waits for")
		assert.Equal(t, []string{"2", "1", "500m"}, cpuOf(pod))
		pod.Status.Conditions = pod.Status.Conditions[:len(pod.Status.Conditions)-1]
		pod, _, _ = refresh(t, resized(pod), at(3*time.Second))
		assert.Equal(t, []string{"mesh:v2", "log:v1", "app:v2"}, imagesOf(pod))
		restarted(pod, "app", "app-1")
		_, p, _ = refresh(t, pod, at(4*time.Second))
		assert.True(t, p.Complete, p.Message)
	})
	t.Run("that restart it have its turn", func(t *testing.T) {
		policy := []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.RestartContainer}}
		from := revisionOf("w-1", variant(v1.Template, func(t *corev1.PodTemplateSpec) { t.Spec.InitContainers[1].ResizePolicy = policy }))
		v2 := revisionOf("w-2", variant(from.Template, func(t *corev1.PodTemplateSpec) {
			t.Spec.InitContainers[1].Resources.Requests = quantities("2", "")
			t.Spec.Containers[0].Image = "app:v2"
		}))
		pod := written(t, begin(t, runningPod(from.Template, "w-1"), from, v2, 0, at(0)))
		assert.Equal(t, corev1.ConditionFalse, gateOf(pod))
		assert.Equal(t, []string{"mesh:v1", "log:v1", "app:v1"}, imagesOf(pod))
		restarted(pod, "mesh", "mesh-1")
		pod, _, _ = refresh(t, resized(pod), at(time.Second))
		assert.Equal(t, []string{"mesh:v1", "log:v1", "app:v2"}, imagesOf(pod))
	})
	t.Run("wait past a deadline like those of containers", func(t *testing.T) {
		v2 := to(func(t *corev1.PodTemplateSpec) { t.Spec.InitContainers[1].Resources.Requests = quantities("2", "") })
		pod := written(t, begin(t, runningPod(v1.Template, "w-1"), v1, v2, 0, at(0)))
		pod.Status.ObservedGeneration = pod.Generation
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue})
		assert.Equal(t, noon, PendingResizeSince(pod, v2.Template, allGates).UTC())
		assert.Zero(t, PendingResizeSince(pod, v1.Template, allGates))
	})
}
