package inplace

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/inplace/completion"
	"github.com/flotilla-project/flotilla/core/pods/inplace/running"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
)

// limited are two revisions of containers a and b, each with a limit of memory: the second one gives a as much as is said,
// and other images where they are said.
func limited(memory string, images ...string) (v1, v2 *Revision) {
	of := func(c *corev1.Container, memory string) {
		c.Resources = corev1.ResourceRequirements{Limits: quantities("1", memory), Requests: quantities("1", memory)}
	}
	v1 = revisionOf("w-1", variant(templateOf("a", "b"), func(t *corev1.PodTemplateSpec) {
		of(&t.Spec.Containers[0], "64Mi")
		of(&t.Spec.Containers[1], "64Mi")
	}))
	v2 = revisionOf("w-2", variant(v1.Template, func(t *corev1.PodTemplateSpec) {
		of(&t.Spec.Containers[0], memory)
		for i, image := range images {
			t.Spec.Containers[i].Image = image
		}
	}))
	return v1, v2
}

// lastOf is the second of two revisions.
func lastOf(_, last *Revision) *Revision { return last }

// withImage is a third revision, with the limits of the second one and image a:v2.
func withImage() *Revision {
	r := lastOf(limited("128Mi", "a:v2"))
	r.Name = "w-3"
	return r
}

// crashed is the pod whose container a waits to be started again. Of such a container kubelets report the resources that
// it is to get.
func crashed(pod *corev1.Pod) *corev1.Pod {
	status := running.Status(pod, "a")
	status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	status.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137}
	status.Ready, status.Resources = false, running.Container(pod, "a").Resources.DeepCopy()
	pod.Status.ObservedGeneration = pod.Generation
	return pod
}

// failing is the pod whose container a waits to be started again, for another reason than its memory.
func failing(pod *corev1.Pod) *corev1.Pod {
	pod = crashed(pod)
	running.Status(pod, "a").LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 1}
	return pod
}

// between is the pod whose container a runs since the moment, after it was killed for its memory.
func between(pod *corev1.Pod, since metav1.Time) *corev1.Pod {
	pod = crashed(pod)
	status := running.Status(pod, "a")
	status.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: since}}
	status.Ready = true
	return pod
}

// The kubelet starts a container that is down with its new limit inside the old limit of the pod, where it is killed again.
func TestALimitIsNotRaisedOfAContainerThatIsDown(t *testing.T) {
	starting := func(pod *corev1.Pod) *corev1.Pod {
		running.Status(pod, "a").State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
		return pod
	}
	for name, tt := range map[string]struct {
		memory string
		images []string
		state  func(*corev1.Pod) *corev1.Pod
		why    string
	}{
		"in a crash loop":      {memory: "128Mi", state: crashed, why: "resources.limits.memory"},
		"with a new image":     {memory: "128Mi", images: []string{"a:v2"}, state: crashed, why: "resources.limits.memory"},
		"never started":        {memory: "128Mi", state: func(pod *corev1.Pod) *corev1.Pod { pod.Status.ContainerStatuses = nil; return pod }, why: "resources.limits.memory"},
		"that runs":            {memory: "128Mi", state: func(pod *corev1.Pod) *corev1.Pod { return pod }},
		"that is about to run": {memory: "128Mi", state: starting},
		"but lowered":          {memory: "32Mi", state: crashed},
		"but left as it is":    {memory: "64Mi", images: []string{"a:v2"}, state: crashed},
		"of another container than that": {memory: "128Mi", state: func(pod *corev1.Pod) *corev1.Pod {
			running.Status(pod, "b").State = corev1.ContainerState{}
			return pod
		}},
	} {
		t.Run(name, func(t *testing.T) {
			v1, v2 := limited(tt.memory, tt.images...)
			u, err := Diff(v1, v2, allGates)
			require.NoError(t, err)
			err = u.Check(tt.state(runningPod(v1.Template, "w-1")))
			if tt.why == "" {
				require.NoError(t, err)
				return
			}
			var notPossible *NotPossibleError
			require.ErrorAs(t, err, &notPossible)
			assert.Contains(t, notPossible.Path, tt.why)
			assert.Contains(t, notPossible.Path, "container a")
		})
	}
}

// One that is about to be started is given its higher limit when it runs.
func TestAHigherLimitWaitsUntilTheContainerRuns(t *testing.T) {
	v1, v2 := limited("128Mi", "a:v1", "b:v2")
	pod := runningPod(v1.Template, "w-1")
	running.Status(pod, "a").State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
	c := begin(t, pod, v1, v2, 0, at(0))
	assert.Equal(t, []string{"pod"}, subresources(c), "the pod is out of service already")
	pod = written(t, c)
	assert.Equal(t, "64Mi", pod.Spec.Containers[0].Resources.Limits.Memory().String())
	assert.Equal(t, "b:v2", pod.Spec.Containers[1].Image, "nothing else waits for it")
	restarted(pod, "b", "b-1")

	pod, p, writes := refresh(t, pod, at(time.Second))
	assert.Equal(t, completion.ReasonResize, p.Reason)
	assert.Contains(t, p.Message, "container a is not running")
	assert.True(t, p.Serving)
	assert.Equal(t, []string{"status"}, writes)
	_, p, writes = refresh(t, pod, at(time.Hour))
	assert.Equal(t, completion.ReasonResize, p.Reason)
	assert.Empty(t, writes)

	restarted(pod, "a", "a-1")
	pod, p, writes = refresh(t, pod, at(time.Hour))
	assert.Equal(t, completion.ReasonBatch, p.Reason)
	assert.Equal(t, []string{"resize", "pod"}, writes)
	_, p, _ = refresh(t, resized(pod), at(time.Hour))
	assert.True(t, p.Complete, p.Message)
}

// A status that repeats the spec of a container that does not run proves nothing.
func TestResourcesAreThoseOfARunningContainer(t *testing.T) {
	v1, v2 := limited("128Mi")
	pod := written(t, begin(t, runningPod(v1.Template, "w-1"), v1, v2, 0, at(0)))
	for range 3 {
		_, p, _ := refresh(t, crashed(pod), at(time.Hour))
		assert.False(t, p.Complete)
		assert.Equal(t, completion.ReasonResize, p.Reason)
		assert.Contains(t, p.Message, "container a has yet to run")
	}
	restarted(pod, "a", "a-1")
	_, p, _ := refresh(t, resized(pod), at(time.Hour))
	assert.True(t, p.Complete, p.Message)
}

// The container may go down between the last look at it and the resize, or while the resize waits for its restart.
func TestALimitThatCannotBeRaisedAnyMoreNeedsANewPod(t *testing.T) {
	begun := func(t *testing.T, images ...string) *corev1.Pod {
		t.Helper()
		v1, v2 := limited("128Mi", images...)
		return written(t, begin(t, runningPod(v1.Template, "w-1"), v1, v2, 0, at(0)))
	}
	held := func(t *testing.T) *corev1.Pod { // a restart of a was under way as its limit was raised
		t.Helper()
		v1, v2 := limited("64Mi", "a:v2")
		_, v3 := limited("128Mi", "a:v2")
		v3.Name = "w-3"
		pod := written(t, begin(t, runningPod(v1.Template, "w-1"), v1, v2, 0, at(0)))
		return written(t, begin(t, pod, v2, v3, 0, at(time.Second)))
	}
	unrecorded := func(t *testing.T, pod *corev1.Pod, v1, v2 *Revision, then func(*corev1.Pod) *corev1.Pod) *corev1.Pod {
		t.Helper()
		c := begin(t, pod, v1, v2, 0, at(0))
		require.Equal(t, []string{"resize", "pod"}, subresources(c))
		pod = then(applied(t, pod.DeepCopy(), c.Patches()[:1]))
		return written(t, begin(t, pod, v1, v2, 0, at(time.Second)))
	}
	for name, tt := range map[string]struct {
		pod  func(t *testing.T) *corev1.Pod
		then func(t *testing.T, pod *corev1.Pod) *corev1.Pod
		at   time.Duration
		want string
	}{
		"it went down as it was written": {
			pod:  func(t *testing.T) *corev1.Pod { t.Helper(); return begun(t) },
			then: func(_ *testing.T, pod *corev1.Pod) *corev1.Pod { return crashed(pod) }, at: time.Minute, want: "a",
		},
		"it went down long after": {
			pod:  func(t *testing.T) *corev1.Pod { t.Helper(); return begun(t) },
			then: func(_ *testing.T, pod *corev1.Pod) *corev1.Pod { return failing(pod) }, at: completion.UnsureTime,
		},
		"it went down as it was written, for another reason than its memory": {
			pod:  func(t *testing.T) *corev1.Pod { t.Helper(); return begun(t) },
			then: func(_ *testing.T, pod *corev1.Pod) *corev1.Pod { return failing(pod) }, at: time.Minute, want: "a",
		},
		"it is killed for its memory, and nobody has looked for long": {
			pod:  func(t *testing.T) *corev1.Pod { t.Helper(); return begun(t) },
			then: func(_ *testing.T, pod *corev1.Pod) *corev1.Pod { return crashed(pod) }, at: time.Hour, want: "a",
		},
		"it is about to be killed for its memory again": {
			pod:  func(t *testing.T) *corev1.Pod { t.Helper(); return begun(t) },
			then: func(_ *testing.T, pod *corev1.Pod) *corev1.Pod { return between(pod, at(time.Hour)) }, at: time.Hour,
		},
		"it restarts for its resize": {
			pod: func(t *testing.T) *corev1.Pod { t.Helper(); return begun(t) },
			then: func(_ *testing.T, pod *corev1.Pod) *corev1.Pod {
				crashed(pod)
				running.Status(pod, "a").State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
				return pod
			}, at: time.Second,
		},
		"the node puts it off": {
			pod: func(t *testing.T) *corev1.Pod { t.Helper(); return begun(t) },
			then: func(_ *testing.T, pod *corev1.Pod) *corev1.Pod {
				pod.Status.Conditions = append(pod.Status.Conditions, puttingOff()["deferred"])
				return crashed(pod)
			}, at: time.Minute,
		},
		"its new image crashes after the resize": {
			pod: func(t *testing.T) *corev1.Pod { t.Helper(); return begun(t, "a:v2") },
			then: func(t *testing.T, pod *corev1.Pod) *corev1.Pod {
				t.Helper()
				pod, _, _ = refresh(t, resized(pod), at(time.Second))
				require.Equal(t, "a:v2", pod.Spec.Containers[0].Image)
				restarted(pod, "a", "a-1")
				return crashed(pod)
			}, at: time.Minute,
		},
		"it crashes with the image that it waits for": {
			pod: held,
			then: func(_ *testing.T, pod *corev1.Pod) *corev1.Pod {
				restarted(pod, "a", "a-1")
				return crashed(pod)
			}, at: time.Minute, want: "a",
		},
		"it went down before the resize was recorded": {
			pod: func(t *testing.T) *corev1.Pod {
				t.Helper()
				v1, v2 := limited("128Mi")
				return unrecorded(t, runningPod(v1.Template, "w-1"), v1, v2, crashed)
			},
			then: func(_ *testing.T, pod *corev1.Pod) *corev1.Pod { return pod }, at: time.Minute, want: "a",
		},
		"it went down as the resize was recorded by a second write": {
			pod: func(t *testing.T) *corev1.Pod {
				t.Helper()
				v1, v2 := limited("128Mi")
				return unrecorded(t, resized(runningPod(v1.Template, "w-1")), v1, v2, func(pod *corev1.Pod) *corev1.Pod { return pod })
			},
			then: func(_ *testing.T, pod *corev1.Pod) *corev1.Pod { return crashed(pod) }, at: time.Minute, want: "a",
		},
		"the limit that was not recorded was lowered": {
			pod: func(t *testing.T) *corev1.Pod {
				t.Helper()
				v1, v2 := limited("32Mi")
				return unrecorded(t, resized(runningPod(v1.Template, "w-1")), v1, v2, func(pod *corev1.Pod) *corev1.Pod { return pod })
			},
			then: func(_ *testing.T, pod *corev1.Pod) *corev1.Pod { return crashed(pod) }, at: time.Minute,
		},
		"its later resize was not recorded": {
			pod: func(t *testing.T) *corev1.Pod {
				t.Helper()
				v1, v2 := limited("128Mi", "a:v1", "b:v2")
				pod := prioritised(resized(runningPod(v1.Template, "w-1")), map[string]string{"a": "p_0", "b": "p_10"})
				pod = answered(written(t, begin(t, pod, v1, v2, 0, at(0))), at(0))
				restarted(pod, "b", "b-1")
				c := action.NewPodChange(pod, at(time.Second))
				Refresh(c, allGates)
				require.Equal(t, []string{"resize", "pod"}, subresources(c))
				pod = crashed(applied(t, pod.DeepCopy(), c.Patches()[:1]))
				pod, _, _ = refresh(t, pod, at(2*time.Second))
				return pod
			},
			then: func(_ *testing.T, pod *corev1.Pod) *corev1.Pod { return pod }, at: time.Minute, want: "a",
		},
		"its next run began before the resize, and gets a new image": {
			pod: func(t *testing.T) *corev1.Pod { t.Helper(); return begun(t, "a:v2") },
			then: func(t *testing.T, pod *corev1.Pod) *corev1.Pod {
				t.Helper()
				restarted(pod, "a", "a-1")
				running.Status(pod, "a").State.Running.StartedAt = at(time.Second)
				pod, _, _ = refresh(t, resized(pod), at(2*time.Second))
				require.Equal(t, "a:v2", pod.Spec.Containers[0].Image)
				return crashed(pod)
			}, at: time.Minute, want: "a",
		},
		"another update came before it went down": {
			pod: func(t *testing.T) *corev1.Pod { t.Helper(); return begun(t) },
			then: func(t *testing.T, pod *corev1.Pod) *corev1.Pod {
				t.Helper()
				_, v2 := limited("128Mi")
				v3 := revisionOf("w-3", variant(v2.Template, func(t *corev1.PodTemplateSpec) { t.Labels = map[string]string{"new": "label"} }))
				return crashed(written(t, begin(t, resized(pod), v2, v3, 0, at(time.Second))))
			}, at: time.Minute, want: "a",
		},
		"another update came long after it began to be killed for its memory": {
			pod: func(t *testing.T) *corev1.Pod { t.Helper(); return begun(t) },
			then: func(t *testing.T, pod *corev1.Pod) *corev1.Pod {
				t.Helper()
				return crashed(written(t, begin(t, crashed(pod), lastOf(limited("128Mi")), withImage(), 0, at(time.Hour))))
			}, at: time.Hour, want: "a",
		},
		"another update came between two of its ends": {
			pod: func(t *testing.T) *corev1.Pod { t.Helper(); return begun(t) },
			then: func(t *testing.T, pod *corev1.Pod) *corev1.Pod {
				t.Helper()
				pod = between(pod, at(time.Hour-time.Minute))
				return crashed(written(t, begin(t, pod, lastOf(limited("128Mi")), withImage(), 0, at(time.Hour))))
			}, at: time.Hour, want: "a",
		},
		"another update came when it had run for long": {
			pod: func(t *testing.T) *corev1.Pod { t.Helper(); return begun(t) },
			then: func(t *testing.T, pod *corev1.Pod) *corev1.Pod {
				t.Helper()
				pod = between(pod, at(time.Hour-completion.UnsureTime-time.Second))
				return crashed(written(t, begin(t, pod, lastOf(limited("128Mi")), withImage(), 0, at(time.Hour))))
			}, at: time.Hour,
		},
		"its next run began before the resize, and another update gives it a new image": {
			pod: func(t *testing.T) *corev1.Pod { t.Helper(); return begun(t) },
			then: func(t *testing.T, pod *corev1.Pod) *corev1.Pod {
				t.Helper()
				restarted(pod, "a", "a-1")
				running.Status(pod, "a").State.Running.StartedAt = at(time.Second)
				pod = written(t, begin(t, resized(pod), lastOf(limited("128Mi")), withImage(), 0, at(2*time.Second)))
				require.Equal(t, "a:v2", pod.Spec.Containers[0].Image)
				return failing(pod)
			}, at: time.Minute, want: "a",
		},
		"its restart is under way": {
			pod: held,
			then: func(_ *testing.T, pod *corev1.Pod) *corev1.Pod {
				pod.Status.ObservedGeneration = pod.Generation
				return pod
			}, at: time.Minute,
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := tt.then(t, tt.pod(t))
			assert.Equal(t, tt.want, StoppedResize(pod, allGates, at(tt.at)))
			assert.Empty(t, StoppedResize(pod, Options{}, at(tt.at)))
		})
	}
}

// Kubernetes 1.33 lowers no memory limit of a container that does not restart for it.
func TestMemoryLimitsThatTheClusterKeeps(t *testing.T) {
	restarts := func(r *Revision) *Revision {
		return revisionOf(r.Name, variant(r.Template, func(t *corev1.PodTemplateSpec) {
			for _, c := range podspec.LongRunning(&t.Spec) {
				c.ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer}}
			}
		}))
	}
	keeps := Options{Resize: true, KeepMemoryLimits: true}
	v1, lower := limited("32Mi")
	_, higher := limited("128Mi")
	_, err := Diff(v1, lower, keeps)
	var notPossible *NotPossibleError
	require.ErrorAs(t, err, &notPossible)
	assert.Equal(t, "spec.containers[0].resources.limits.memory", notPossible.Path)
	_, err = Diff(v1, lower, allGates)
	require.NoError(t, err, "Kubernetes 1.34 and later lower it")
	_, err = Diff(v1, higher, keeps)
	require.NoError(t, err)
	_, err = Diff(restarts(v1), restarts(lower), keeps)
	require.NoError(t, err)

	u, err := Diff(v1, higher, keeps)
	require.NoError(t, err)
	pod := runningPod(v1.Template, "w-1")
	pod.Spec.Containers[0].Resources.Limits = quantities("1", "1Gi") // an autoscaler has given it more
	require.ErrorAs(t, u.Check(pod), &notPossible)
	for server, want := range map[string]bool{"v1.33.13": true, "v1.34.0": false, "v1.36.3": false, "v1.33.4+k3s1": true} {
		got, err := KeepsMemoryLimits(server)
		require.NoError(t, err)
		assert.Equal(t, want, got, server)
	}
	_, err = KeepsMemoryLimits("none")
	require.Error(t, err)
}

// A container that got its resources long ago and crashes now holds back no later update of a container after it.
func TestACrashAfterAResizeHoldsUpNoLaterUpdate(t *testing.T) {
	v1, v2 := limited("128Mi")
	_, v3 := limited("128Mi", "a:v1", "b:v2")
	v3.Name = "w-3"
	pod := prioritised(runningPod(v1.Template, "w-1"), map[string]string{"a": "p_10", "b": "p_0"})
	pod, p, _ := refresh(t, resized(written(t, begin(t, pod, v1, v2, 0, at(0)))), at(time.Minute))
	require.True(t, p.Complete)
	later := written(t, begin(t, failing(pod.DeepCopy()), v2, v3, 0, at(time.Hour)))
	assert.Equal(t, "b:v2", later.Spec.Containers[1].Image)
	assert.Empty(t, StoppedResize(failing(later), allGates, at(time.Hour)), "nor does it cost the pod")

	later = written(t, begin(t, crashed(pod), v2, v3, 0, at(time.Hour)))
	assert.Equal(t, "b:v2", later.Spec.Containers[1].Image)
	assert.Equal(t, "a", StoppedResize(crashed(later), allGates, at(time.Hour)), "memory that is not enough may be the old limit")
}
