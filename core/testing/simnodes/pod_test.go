package simnodes

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

var dawn = time.Date(2030, 1, 1, 6, 0, 0, 0, time.UTC)

// images are the behaviours that the tests name.
var images = map[string]Image{
	"crash":    CrashLoop(),
	"done":     {Exits: true, ExitAfter: time.Minute},
	"late":     {StartDelay: 2 * time.Second, ReadyDelay: 3 * time.Second},
	"absent":   {PullFails: true},
	"failinit": {Exits: true, ExitCode: 2},
}

func behaviour(name string) Image { return images[name] }

func podOf(policy corev1.RestartPolicy, inits []corev1.Container, mains ...string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "space", Name: "pod", UID: "uid", Generation: 4},
		Spec:       corev1.PodSpec{RestartPolicy: policy, InitContainers: inits},
	}
	for _, image := range mains {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "main-" + image, Image: image})
	}
	return pod
}

// live runs the pod from a moment on until nothing more happens by itself or the duration has
// passed, and returns what was reported at its end and how often something happened.
func live(pod *corev1.Pod, o *Options, from time.Time, duration time.Duration) (*corev1.PodStatus, int) {
	run := newPodRun(pod, "10.0.0.1", from)
	now, steps := from, 0
	for {
		steps++
		next := run.step(pod, now, o, behaviour)
		pod.Status = *run.status(pod, now, "10.0.0.2", behaviour)
		if next.IsZero() || next.After(from.Add(duration)) {
			return &pod.Status, steps
		}
		now = next
	}
}

func TestPhaseFollowsContainers(t *testing.T) {
	step := []corev1.Container{{Name: "setup", Image: "setup"}}
	failing := []corev1.Container{{Name: "setup", Image: "failinit"}}
	helper := []corev1.Container{{Name: "helper", Image: "helper", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}}
	for name, c := range map[string]struct {
		pod   *corev1.Pod
		phase corev1.PodPhase
		ready bool
	}{
		"a service runs":                       {podOf(corev1.RestartPolicyAlways, nil, "web"), corev1.PodRunning, true},
		"a crashing service counts as running": {podOf(corev1.RestartPolicyAlways, nil, "crash"), corev1.PodRunning, false},
		"an image that is absent":              {podOf(corev1.RestartPolicyAlways, nil, "absent"), corev1.PodPending, false},
		"a job succeeds":                       {podOf(corev1.RestartPolicyNever, nil, "done"), corev1.PodSucceeded, false},
		"a job fails":                          {podOf(corev1.RestartPolicyNever, nil, "crash"), corev1.PodFailed, false},
		"a job with one failure fails":         {podOf(corev1.RestartPolicyNever, nil, "crash", "done"), corev1.PodFailed, false},
		"a job that may restart goes on":       {podOf(corev1.RestartPolicyOnFailure, nil, "crash"), corev1.PodRunning, false},
		"init containers end first":            {podOf(corev1.RestartPolicyAlways, step, "web"), corev1.PodRunning, true},
		"an init container that fails holds":   {podOf(corev1.RestartPolicyAlways, failing, "web"), corev1.PodPending, false},
		"an init container that fails ends":    {podOf(corev1.RestartPolicyNever, failing, "web"), corev1.PodFailed, false},
		"a sidecar runs beside":                {podOf(corev1.RestartPolicyAlways, helper, "web"), corev1.PodRunning, true},
		"a sidecar ends with its job":          {podOf(corev1.RestartPolicyNever, helper, "done"), corev1.PodSucceeded, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := live(c.pod, &Options{CrashBackoff: time.Second}, dawn, 2*time.Minute)
			assert.Equal(t, c.phase, s.Phase)
			assert.Equal(t, c.ready, isReady(s))
			assert.Equal(t, int64(4), s.ObservedGeneration)
			for i := range s.InitContainerStatuses {
				if s.Phase == corev1.PodSucceeded {
					assert.NotNil(t, s.InitContainerStatuses[i].State.Terminated)
				}
			}
		})
	}
}

func TestDelaysAreSeenOneByOne(t *testing.T) {
	pod := podOf(corev1.RestartPolicyAlways, nil, "late")
	o := &Options{StartDelay: time.Second}
	run := newPodRun(pod, "10.0.0.1", dawn)
	at := func(seconds int) (*corev1.PodStatus, time.Time) {
		now := dawn.Add(time.Duration(seconds) * time.Second)
		next := run.step(pod, now, o, behaviour)
		return run.status(pod, now, "10.0.0.2", behaviour), next
	}
	s, next := at(0)
	assert.Equal(t, corev1.PodPending, s.Phase)
	assert.Equal(t, dawn.Add(3*time.Second), next)
	s, next = at(3)
	assert.Equal(t, corev1.PodRunning, s.Phase)
	assert.False(t, isReady(s))
	assert.Equal(t, dawn.Add(6*time.Second), next)
	s, next = at(6)
	assert.True(t, isReady(s))
	assert.Zero(t, next)
}

func TestCrashBackoffDoublesUpToItsBound(t *testing.T) {
	pod := podOf(corev1.RestartPolicyAlways, nil, "crash")
	run := newPodRun(pod, "10.0.0.1", dawn)
	now := dawn
	var waits []time.Duration
	for range 9 {
		next := run.step(pod, now, &Options{CrashBackoff: time.Second}, behaviour)
		waits = append(waits, next.Sub(now)/time.Second)
		now = next
	}
	assert.Equal(t, []time.Duration{0, 1, 2, 4, 8, 16, 32, 32, 32}, waits)
	s := run.status(pod, now, "10.0.0.2", behaviour)
	assert.Equal(t, int32(8), s.ContainerStatuses[0].RestartCount)
}

func TestJitterDependsOnSeedAndNameAlone(t *testing.T) {
	startOf := func(seed int64, name string) time.Duration {
		pod := podOf(corev1.RestartPolicyAlways, nil, "web")
		pod.Name = name
		next := newPodRun(pod, "10.0.0.1", dawn).step(pod, dawn, &Options{StartDelay: time.Second, Jitter: 0.5, Seed: seed}, behaviour)
		return next.Sub(dawn)
	}
	start := startOf(1, "a")
	assert.Equal(t, start, startOf(1, "a"))
	assert.NotEqual(t, start, startOf(2, "a"))
	assert.NotEqual(t, start, startOf(1, "b"))
	for _, name := range []string{"a", "b", "c", "d"} {
		assert.GreaterOrEqual(t, startOf(1, name), time.Second)
		assert.Less(t, startOf(1, name), 1500*time.Millisecond)
	}
}

func TestAdoptionContinuesWhatTheStatusSays(t *testing.T) {
	for name, pod := range map[string]*corev1.Pod{
		"running":   podOf(corev1.RestartPolicyAlways, []corev1.Container{{Name: "setup", Image: "setup"}}, "web", "late"),
		"completed": podOf(corev1.RestartPolicyNever, nil, "done"),
	} {
		t.Run(name, func(t *testing.T) {
			before, _ := live(pod, &Options{}, dawn, time.Hour)
			before = before.DeepCopy()
			after, steps := live(pod, &Options{}, dawn.Add(time.Hour), time.Hour)
			assert.Equal(t, before, after)
			assert.Equal(t, 1, steps)
		})
	}
}

func TestImageIDsTellContentApart(t *testing.T) {
	assert.NotEqual(t, ImageID("host:5000/web:v1"), ImageID("host:5000/web:v2"))
	assert.Contains(t, ImageID("host:5000/web:v1"), "host:5000/web@sha256:")
	pinned := "web@sha256:" + digest(0, "x")
	require.Equal(t, pinned, ImageID(pinned))
}
