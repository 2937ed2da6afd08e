package inplace

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/testing/fuzz"
	"github.com/flotilla-project/flotilla/core/testing/seeds"
)

// Annotations of a pod are anybody's to write. Whatever they hold, a pass over the pod comes to its end.
func TestHostileAnnotationsStopNobody(t *testing.T) {
	seeds.Each(t, 3000, func(t *testing.T, seed uint64) {
		t.Helper()
		random := rand.New(rand.NewPCG(seed, 2))
		pod, from, to := hostilePod(t, random)
		now := at(time.Duration(random.IntN(300)) * time.Second)
		c := action.NewPodChange(pod, now)
		Refresh(c, allGates)
		written(t, c)
		if u, err := Diff(from, to, allGates); err == nil {
			c := action.NewPodChange(pod, now)
			_ = u.Check(pod)
			u.Interrupts(pod)
			u.Begin(c, int32(random.IntN(2)*10))
			written(t, c)
		}
	})
}

// FuzzStored is TestHostileAnnotationsStopNobody for all of a pod: labels, conditions, statuses and managed fields, too.
func FuzzStored(f *testing.F) {
	fuzz.Typed(f, fuzz.CRD{}, func(t *testing.T, before, pod *corev1.Pod) {
		t.Helper()
		now := at(time.Minute)
		from := &corev1.PodTemplateSpec{ObjectMeta: before.ObjectMeta, Spec: before.Spec}
		to := &corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}
		for _, steps := range []func(*action.PodChange){
			func(c *action.PodChange) { Refresh(c, allGates) },
			func(c *action.PodChange) { ServeAsIs(c, allGates) },
			BeginGrace, Next, NextResizes,
		} {
			steps(action.NewPodChange(pod, now))
		}
		AgentMissing(pod, now.Time, allGates)
		PendingResizeSince(pod, from, allGates)
		StoppedResize(pod, allGates, now)
		ResizedByOthers(pod, from)
		UnrecordedResize(pod, from, allGates, now.Time)
		if u, err := Diff(revisionOf("w-1", from), revisionOf("w-2", to), allGates); err == nil {
			_ = u.Check(pod)
			u.Interrupts(pod)
			u.Begin(action.NewPodChange(pod, now), 10)
		}
	}, fuzz.Pods(f)...)
}

// hostilePod is a pod whose annotations name what is there, what is not, and what makes no sense.
func hostilePod(t *testing.T, random *rand.Rand) (pod *corev1.Pod, from, to *Revision) {
	t.Helper()
	some := func(values ...any) any { return values[random.IntN(len(values))] }
	quantities := func() any { return map[string]any{"cpu": some("1", "2", "0"), some("memory", "gpu").(string): "1Gi"} }
	metadata := func() any {
		return some(nil, map[string]any{"annotations": map[string]any{"cfg": some("a", nil, "")}, "labels": some(nil, map[string]any{"x": "y"})})
	}
	byContainer := func(value func() any) any {
		return some(nil, map[string]any{some("app", "log", "gone", "").(string): value(), some("app", "gone").(string): value()})
	}
	image := func() any { return some("app:v1", "app:v9", "", ":", "@", "sha256:") }
	last := func() any {
		return some(nil, map[string]any{}, map[string]any{"imageID": some("", imageIDOf("app:v1")), "containerID": some(nil, "", "app-0")})
	}
	resources := func() any { return some(nil, map[string]any{"limits": quantities(), "requests": quantities()}) }
	names := func() any { return some(nil, []any{}, []any{"gone"}, []any{"app", "gone", "app"}) }
	state := map[string]any{
		"revision": some("", "w-1", "w-2"), "updateTimestamp": some(nil, "2026-01-01T12:00:00Z", "2036-01-01T12:00:00Z"),
		"lastContainerStatuses": byContainer(last), "updateEnvFromMetadata": some(true, false), "updateResources": some(true, false),
		"nextContainerImages": byContainer(image), "nextContainerRefMetadata": byContainer(metadata), "nextContainerResources": byContainer(resources),
		"preCheckBeforeNext":     some(nil, map[string]any{"containersRequiredReady": names()}),
		"containerBatchesRecord": some(nil, []any{map[string]any{"timestamp": nil, "containers": names()}, nil}),
	}
	grace := map[string]any{
		"revision": some("", "w-1", "w-2"), "containerImages": byContainer(image), "containerRefMetadata": byContainer(metadata),
		"containerResources": byContainer(resources), "metaDataPatch": some(nil, "e30=", "eyJtZXRhZGF0YSI6bnVsbH0=", "bnVsbA==", "e30"),
		"graceSeconds": some(-1, 0, 10),
	}
	v1 := templateOf("app", "log")
	v1.Spec.Containers[0].Env = []corev1.EnvVar{envFrom("CFG", "cfg")}
	v1.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: quantitiesOf("1")}
	v2 := variant(v1, func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = "app:v2" })
	pod = runningPod(v1, "w-1")
	if random.IntN(2) == 0 {
		pod.Status.ContainerStatuses = pod.Status.ContainerStatuses[:random.IntN(2)]
	}
	if random.IntN(2) == 0 {
		pod.Status.Conditions[2].Status = corev1.ConditionFalse
	}
	pod.Annotations = map[string]string{}
	for _, annotation := range []struct {
		key   string
		value any
	}{
		{contract.InPlaceUpdateStateAnnotation, some(state, state, state, []any{}, "x", nil)},
		{contract.InPlaceUpdateGraceAnnotation, some(grace, nil, "x")},
		{contract.RuntimeContainersMetaAnnotation, some(nil, map[string]any{"containers": []any{nil, map[string]any{"name": "app", "containerID": "app-0"}}})},
	} {
		if random.IntN(4) == 0 {
			continue
		}
		text, err := json.Marshal(annotation.value)
		require.NoError(t, err)
		pod.Annotations[annotation.key] = string(text)
	}
	return pod, revisionOf("w-1", v1), revisionOf("w-2", v2)
}

func quantitiesOf(cpu string) corev1.ResourceList { return quantities(cpu, "1Gi") }
