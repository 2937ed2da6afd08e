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

func TestEnvFromMetadata(t *testing.T) {
	reader := variant(templateOf("app"), func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].Env = []corev1.EnvVar{envFrom("CFG", "example.com/cfg"), envFrom(contract.SidecarSetVersionEnv, "version")}
	})
	with := func(annotations map[string]string) *Revision {
		name := "w-none"
		if annotations != nil {
			name = "w-" + annotations["example.com/cfg"] + annotations["version"]
		}
		return revisionOf(name, variant(reader, func(t *corev1.PodTemplateSpec) { t.Annotations = annotations }))
	}
	one, two, none := with(map[string]string{"example.com/cfg": "1"}), with(map[string]string{"example.com/cfg": "2"}), with(nil)
	for name, tt := range map[string]struct {
		from, to *Revision
		env      bool
	}{
		"changed":                 {one, two, true},
		"first annotation of all": {none, one, true},
		"removed":                 {one, none, true},
		"excluded variable":       {none, with(map[string]string{"version": "1"}), false},
	} {
		t.Run(name, func(t *testing.T) {
			u, err := Diff(tt.from, tt.to, allGates)
			require.NoError(t, err)
			pod := runningPod(tt.from.Template, tt.from.Name)
			if tt.env {
				var missing *NodeAgentMissingError
				require.ErrorAs(t, u.Check(pod), &missing)
				assert.Equal(t, "app", missing.Container)
			}
			told(pod)
			require.NoError(t, u.Check(pod))
			assert.Equal(t, tt.env, u.Interrupts(pod))
			pod = written(t, begin(t, pod, tt.from, tt.to, 0, at(0)))
			pod.Status.ObservedGeneration = pod.Generation
			assert.Equal(t, tt.to.Template.Annotations["example.com/cfg"], pod.Annotations["example.com/cfg"])
			assert.Equal(t, tt.env, stateOf(t, pod).UpdateEnvFromMetadata)
			_, p, _ := refresh(t, pod, at(0))
			assert.Equal(t, !tt.env, p.Complete, "the agent still tells of the old environment")
			restarted(pod, "app", "app-1")
			_, p, _ = refresh(t, told(pod), at(completion.ReadTime))
			assert.True(t, p.Complete)
		})
	}
	t.Run("feature gate off", func(t *testing.T) {
		u, err := Diff(one, two, Options{})
		require.NoError(t, err)
		pod := runningPod(one.Template, one.Name)
		require.NoError(t, u.Check(pod))
		assert.False(t, u.Interrupts(pod), "plain metadata")
	})
	t.Run("agent that knows another container", func(t *testing.T) {
		u, err := Diff(one, two, allGates)
		require.NoError(t, err)
		pod := told(runningPod(one.Template, one.Name))
		pod.Status.ContainerStatuses[0].ContainerID = "app-1"
		var missing *NodeAgentMissingError
		assert.ErrorAs(t, u.Check(pod), &missing)
	})
	t.Run("pod without readiness gate", func(t *testing.T) {
		u, err := Diff(one, two, allGates)
		require.NoError(t, err)
		pod := told(runningPod(one.Template, one.Name))
		pod.Spec.ReadinessGates = nil
		var not *NotPossibleError
		assert.ErrorAs(t, u.Check(pod), &not)
	})
}

func TestRemovalOfAReadKeyWaitsForItsBatch(t *testing.T) {
	v1 := revisionOf("w-1", variant(templateOf("first", "second"), func(t *corev1.PodTemplateSpec) {
		t.Annotations = map[string]string{"cfg": "1"}
		t.Spec.Containers[1].Env = []corev1.EnvVar{envFrom("CFG", "cfg")}
	}))
	v2 := revisionOf("w-2", variant(v1.Template, func(t *corev1.PodTemplateSpec) {
		t.Annotations = nil
		t.Spec.Containers[0].Image = "first:v2"
	}))
	pod := told(prioritised(runningPod(v1.Template, "w-1"), map[string]string{"first": "p_10", "second": "p_1"}))
	pod = written(t, begin(t, pod, v1, v2, 0, at(0)))
	assert.Contains(t, pod.Annotations[contract.InPlaceUpdateStateAnnotation], `"nextContainerRefMetadata":{"second":{"annotations":{"cfg":null}}}`)
	assert.Equal(t, "1", pod.Annotations["cfg"])
	restarted(pod, "first", "first-1")
	pod, _, _ = refresh(t, told(pod), at(time.Second))
	assert.NotContains(t, pod.Annotations, "cfg")
}

// configured has container app, which reads annotation cfg, and side, which reads nothing.
func configured(value string) *Revision {
	return revisionOf("w-"+value, variant(templateOf("app", "side"), func(t *corev1.PodTemplateSpec) {
		t.Annotations = map[string]string{"cfg": value}
		t.Spec.Containers[0].Env = []corev1.EnvVar{envFrom("CFG", "cfg")}
	}))
}

// annotatedByHand is a pod of revision w-1 that a hand has annotated since its containers were started.
func annotatedByHand(value string) *corev1.Pod {
	pod := told(runningPod(configured("1").Template, "w-1"))
	pod.Annotations["cfg"] = value
	return pod
}

func TestAHandCannotAnticipateARestart(t *testing.T) {
	u, err := Diff(configured("1"), configured("2"), allGates)
	require.NoError(t, err)
	for _, value := range []string{"1", "2", "9"} {
		t.Run(value, func(t *testing.T) {
			pod := annotatedByHand(value)
			require.NoError(t, u.Check(pod))
			assert.True(t, u.Interrupts(pod))
			pod = written(t, begin(t, pod, configured("1"), configured("2"), 0, at(0)))
			assert.Equal(t, "2", pod.Annotations["cfg"])
			assert.Equal(t, corev1.ConditionFalse, gateOf(pod), "the node agent restarts nothing in service")
			_, p, _ := refresh(t, pod, at(time.Minute))
			assert.Equal(t, completion.ReasonContainer, p.Reason)
			restarted(pod, "app", "app-1")
			pod, p, _ = refresh(t, told(pod), at(time.Minute))
			assert.True(t, p.Complete)
			assert.Equal(t, corev1.ConditionTrue, gateOf(pod))
		})
	}
}

func TestAContainerThatHasReadTheValueIsNotRestarted(t *testing.T) {
	pod := annotatedByHand("2")
	restarted(pod, "app", "app-1") // a crash
	told(pod)
	u, err := Diff(configured("1"), configured("2"), allGates)
	require.NoError(t, err)
	assert.False(t, u.Interrupts(pod))
	pod = written(t, begin(t, pod, configured("1"), configured("2"), 0, at(0)))
	_, p, _ := refresh(t, pod, at(0))
	assert.True(t, p.Complete)
}

func TestAValueOnThePodDoesNotReplaceTheNodeAgent(t *testing.T) {
	u, err := Diff(configured("1"), configured("2"), allGates)
	require.NoError(t, err)
	pod := annotatedByHand("2")
	delete(pod.Annotations, contract.RuntimeContainersMetaAnnotation)
	var missing *NodeAgentMissingError
	require.ErrorAs(t, u.Check(pod), &missing, "nobody knows what the container has read")
	require.ErrorAs(t, u.Check(told(annotatedByHand("2"), "app")), &missing, "an agent that does not look at environments")

	u, err = Diff(configured("1"), configured("2"), Options{Resize: true})
	require.NoError(t, err)
	require.NoError(t, u.Check(pod), "without the feature gate the key is plain metadata")
	assert.False(t, u.Interrupts(pod))
}

// A container that was never started reads what the metadata says when it starts. The node agent, which restarts it if
// it has just read the former value, is known by its annotation, even an empty list.
func TestAContainerThatWasNeverStartedNeedsNoRestart(t *testing.T) {
	u, err := Diff(configured("1"), configured("2"), allGates)
	require.NoError(t, err)
	pod := runningPod(configured("1").Template, "w-1")
	status := running.Status(pod, "app")
	status.ContainerID, status.ImageID = "", ""
	status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}
	var missing *NodeAgentMissingError
	require.ErrorAs(t, u.Check(pod), &missing, "no agent is known")
	pod.Annotations[contract.RuntimeContainersMetaAnnotation] = `{"containers":[{"name":"side","containerID":"s","hashes":{"plainHash":1}}]}`
	require.ErrorAs(t, u.Check(pod), &missing, "an agent that does not look at environments")
	pod.Annotations[contract.RuntimeContainersMetaAnnotation] = `{"containers":[]}`
	require.NoError(t, u.Check(pod))
	status.ContainerID = "started"
	require.ErrorAs(t, u.Check(pod), &missing, "a container that the agent has not told of")
}

func TestAHandInTheGracePeriodDoesNotEndTheUpdate(t *testing.T) {
	pod := told(runningPod(configured("1").Template, "w-1"))
	pod = written(t, begin(t, pod, configured("1"), configured("2"), 10, at(0)))
	pod.Annotations["cfg"] = "2"
	pod, p, _ := refresh(t, pod, at(10*time.Second))
	assert.Equal(t, completion.ReasonBatch, p.Reason)
	_, p, _ = refresh(t, pod, at(time.Minute))
	assert.Equal(t, completion.ReasonContainer, p.Reason)
	restarted(pod, "app", "app-1")
	_, p, _ = refresh(t, told(pod), at(time.Minute))
	assert.True(t, p.Complete)
}

// Nothing is left to be renewed when the container has crashed after the hand, and a container that no node agent
// tells of is not asked for.
func TestARestartInTheGracePeriodEndsTheUpdate(t *testing.T) {
	pod := told(runningPod(configured("1").Template, "w-1"))
	pod = written(t, begin(t, pod, configured("1"), configured("2"), 10, at(0)))
	pod.Annotations["cfg"] = "2"
	restarted(pod, "app", "app-1")
	told(pod)
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "injected", Env: []corev1.EnvVar{envFrom("CFG", "cfg")}})
	pod, p, _ := refresh(t, pod, at(10*time.Second))
	assert.Equal(t, completion.ReasonBatch, p.Reason)
	_, p, _ = refresh(t, pod, at(time.Minute))
	assert.True(t, p.Complete, p.Message)
}

// A rollback finds the container that has never read the value in between. Nobody knows yet whether it has just
// crashed and its successor has.
func TestARollbackWaitsForRestartsThatTheStatusMayNotShowYet(t *testing.T) {
	pod := told(runningPod(configured("1").Template, "w-1"))
	pod = written(t, begin(t, pod, configured("1"), configured("2"), 0, at(0)))
	pod = written(t, begin(t, pod, configured("2"), configured("1"), 0, at(time.Second)))
	_, p, _ := refresh(t, pod, at(time.Second))
	assert.Equal(t, completion.ReasonContainer, p.Reason)
	assert.Equal(t, completion.ReadTime, p.RequeueAfter)
	_, p, _ = refresh(t, pod, at(time.Second+completion.ReadTime))
	assert.True(t, p.Complete)
}

// What a hand has changed beside the template is read by the next restart. The node agent makes it while the
// pod is out of service anyway.
func TestAnUpdateOfTheImageWaitsForRestartsThatAHandHasCaused(t *testing.T) {
	from := configured("1")
	to := revisionOf("w-image", variant(from.Template, func(t *corev1.PodTemplateSpec) { t.Spec.Containers[1].Image = "side:v2" }))
	pod := written(t, begin(t, annotatedByHand("9"), from, to, 0, at(0)))
	restarted(pod, "side", "side-1")
	_, p, _ := refresh(t, pod, at(time.Second))
	assert.Equal(t, completion.ReasonContainer, p.Reason)
	assert.Contains(t, p.Message, "app")
	assert.Equal(t, completion.UnsureTime-time.Second, p.RequeueAfter)

	_, p, _ = refresh(t, pod, at(completion.UnsureTime))
	assert.True(t, p.Complete, "a node agent that is gone holds up no update that can do without it")
	restarted(pod, "app", "app-1")
	_, p, _ = refresh(t, told(pod), at(2*time.Second))
	assert.True(t, p.Complete)
}
