package inplace

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/inplace/agentreport"
	"github.com/flotilla-project/flotilla/core/pods/inplace/annotation"
	"github.com/flotilla-project/flotilla/core/pods/inplace/completion"
	"github.com/flotilla-project/flotilla/core/pods/inplace/record"
	"github.com/flotilla-project/flotilla/core/pods/inplace/running"
)

func TestPlainMetadataIsDoneWhenWritten(t *testing.T) {
	v1 := revisionOf("w-1", variant(templateOf("app"), func(t *corev1.PodTemplateSpec) {
		t.Labels = map[string]string{"version": "a", "old": "x"}
		t.Finalizers = []string{"example.io/old"}
	}))
	v2 := revisionOf("w-2", variant(v1.Template, func(t *corev1.PodTemplateSpec) {
		t.Labels = map[string]string{"version": "b"}
		t.Annotations = map[string]string{"example.com/a": "1"}
		t.Finalizers = []string{"example.io/new"}
	}))
	pod := runningPod(v1.Template, "w-1")
	pod.Labels["by-webhook"] = "kept"
	u, err := Diff(v1, v2, allGates)
	require.NoError(t, err)
	assert.False(t, u.Interrupts(pod))

	c := begin(t, pod, v1, v2, 30, at(0))
	assert.Equal(t, []string{"pod"}, subresources(c), "no condition and no grace when nothing restarts")
	pod = written(t, c)
	assert.Equal(t, map[string]string{"version": "b", "by-webhook": "kept", contract.RevisionLabel: "w-2"}, pod.Labels)
	assert.Equal(t, "1", pod.Annotations["example.com/a"])
	assert.Equal(t, []string{"example.io/new"}, pod.Finalizers)
	_, p, writes := refresh(t, pod, at(0))
	assert.True(t, p.Complete)
	assert.Empty(t, writes)
}

func TestOnlyWhatTheTemplateChangesIsWritten(t *testing.T) {
	v1 := revisionOf("w-1", templateOf("app", "log"))
	v2 := revisionOf("w-2", variant(v1.Template, func(t *corev1.PodTemplateSpec) { t.Spec.Containers[1].Image = "log:v2" }))
	pod := runningPod(v1.Template, "w-1")
	pod.Spec.Containers[0].Image = "mirror.example.com/app:v1" // rewritten by a webhook
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "injected", Image: "mesh:v1"})
	pod = written(t, begin(t, pod, v1, v2, 0, at(0)))
	assert.Equal(t, "mirror.example.com/app:v1", pod.Spec.Containers[0].Image)
	assert.Equal(t, "mesh:v1", pod.Spec.Containers[2].Image)
	restarted(pod, "log", "log-1")
	_, p, _ := refresh(t, pod, at(0))
	assert.True(t, p.Complete, "a container that reports nothing and was not touched is not awaited")
}

func TestResizeCosts(t *testing.T) {
	restart := []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer}}
	for name, tt := range map[string]struct {
		policy     []corev1.ContainerResizePolicy
		limits     corev1.ResourceList
		writes     []string
		interrupts bool
	}{
		"without restart":                    {nil, quantities("2", "2Gi"), []string{"resize", "pod"}, false},
		"restart for another resource":       {restart, quantities("2", "1Gi"), []string{"resize", "pod"}, false},
		"restart for the resource resized":   {restart, quantities("1", "2Gi"), []string{"resize", "pod"}, true},
		"restart for one of both, both grow": {restart, quantities("2", "2Gi"), []string{"resize", "pod"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			v1 := revisionOf("w-1", variant(templateOf("app"), func(t *corev1.PodTemplateSpec) {
				t.Spec.Containers[0].Resources.Limits, t.Spec.Containers[0].ResizePolicy = quantities("1", "1Gi"), tt.policy
			}))
			v2 := revisionOf("w-2", variant(v1.Template, func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Resources.Limits = tt.limits }))
			pod := runningPod(v1.Template, "w-1")
			u, err := Diff(v1, v2, allGates)
			require.NoError(t, err)
			assert.Equal(t, tt.interrupts, u.Interrupts(pod))
			c := begin(t, pod, v1, v2, 0, at(0))
			assert.Equal(t, tt.writes, subresources(c))
			pod = written(t, c)

			pod, p, writes := refresh(t, pod, at(0))
			assert.Equal(t, completion.ReasonKubelet, p.Reason)
			assert.Empty(t, writes)
			pod.Status.ObservedGeneration = pod.Generation
			pod.Status.ContainerStatuses[0].Resources = pod.Spec.Containers[0].Resources.DeepCopy()
			pod, p, writes = refresh(t, pod, at(0))
			assert.True(t, p.Complete)
			assert.Equal(t, tt.interrupts, len(writes) == 1, "%v", writes)
			assert.Equal(t, corev1.ConditionTrue, gateOf(pod))
		})
	}
}

func TestResizeWritesOnlyDifferingQuantities(t *testing.T) {
	v1 := revisionOf("w-1", variant(templateOf("app"), resources(quantities("200m", "200Mi"), quantities("100m", "100Mi"))))
	v2 := revisionOf("w-2", variant(v1.Template, resources(quantities("400m", "200Mi"), quantities("100m", "100Mi"))))
	c := begin(t, runningPod(v1.Template, "w-1"), v1, v2, 0, at(0))
	assert.Equal(t, map[string]any{"spec": map[string]any{"containers": []any{
		map[string]any{"name": "app", "resources": map[string]any{"limits": map[string]any{"cpu": "400m"}}},
	}}}, c.Patches()[0].Body)
}

func TestResizeProgressSaysWhatTheKubeletSays(t *testing.T) {
	v1 := revisionOf("w-1", variant(templateOf("app"), resources(nil, quantities("1", ""))))
	v2 := revisionOf("w-2", variant(v1.Template, resources(nil, quantities("100", ""))))
	pod := written(t, begin(t, runningPod(v1.Template, "w-1"), v1, v2, 0, at(0)))
	pod.Status.ObservedGeneration = pod.Generation
	_, p, _ := refresh(t, pod, at(0))
	assert.Equal(t, "Resize", p.Reason)
	for _, condition := range []corev1.PodCondition{
		{Type: corev1.PodResizePending, Reason: corev1.PodReasonInfeasible},
		{Type: corev1.PodResizePending, Reason: corev1.PodReasonDeferred},
		{Type: corev1.PodResizeInProgress, Reason: corev1.PodReasonError},
	} {
		condition.Status, condition.Message = corev1.ConditionTrue, "node has not enough cpu"
		stuck := pod.DeepCopy()
		stuck.Status.Conditions = append(stuck.Status.Conditions, condition)
		_, p, _ = refresh(t, stuck, at(0))
		assert.Equal(t, completion.ReasonResize+condition.Reason, p.Reason)
		assert.Contains(t, p.Message, "node has not enough cpu")

		back := written(t, begin(t, stuck, v2, v1, 0, at(time.Second)))
		assert.True(t, back.Spec.Containers[0].Resources.Requests.Cpu().Equal(v1.Template.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU]))
		back.Status.ObservedGeneration = back.Generation
		back.Status.Conditions = pod.Status.Conditions
		_, p, _ = refresh(t, back, at(2*time.Second))
		assert.True(t, p.Complete, "a failing resize is left by a further update")
	}
}

func TestGrace(t *testing.T) {
	v1 := revisionOf("w-1", variant(templateOf("app"), func(t *corev1.PodTemplateSpec) { t.Finalizers = []string{"example.io/old"} }))
	v2 := revisionOf("w-2", variant(v1.Template, func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].Image = "app:v2"
		t.Labels = map[string]string{"version": "b"}
		t.Finalizers = nil
	}))
	start := func() *corev1.Pod {
		u, err := Diff(v1, v2, allGates)
		require.NoError(t, err)
		c := action.NewPodChange(runningPod(v1.Template, "w-1"), at(0))
		u.Begin(c, 10)
		c.SetLabel(contract.RevisionLabel, "w-2")
		assert.Equal(t, []string{"status"}, subresources(c), "the plan rides on the condition")
		pod, p, writes := refresh(t, answered(written(t, c), at(0)), at(0))
		assert.Equal(t, completion.ReasonGracePeriod, p.Reason)
		assert.Equal(t, []string{"pod"}, writes, "the period begins")
		return pod
	}
	t.Run("waits, then writes the first batch", func(t *testing.T) {
		pod := start()
		assert.Equal(t, "app:v1", pod.Spec.Containers[0].Image)
		assert.NotContains(t, pod.Labels, "version")
		pod, p, writes := refresh(t, pod, at(3200*time.Millisecond))
		assert.Equal(t, completion.ReasonGracePeriod, p.Reason)
		assert.Equal(t, 7*time.Second, p.RequeueAfter, "rounded up")
		assert.Empty(t, writes)
		pod, p, writes = refresh(t, pod, at(10*time.Second))
		assert.Equal(t, completion.ReasonBatch, p.Reason)
		assert.Equal(t, []string{"pod"}, writes)
		assert.Equal(t, "app:v2", pod.Spec.Containers[0].Image)
		assert.Equal(t, "b", pod.Labels["version"])
		assert.Empty(t, pod.Finalizers)
		assert.NotContains(t, pod.Annotations, contract.InPlaceUpdateGraceAnnotation)
		restarted(pod, "app", "app-1")
		pod, p, writes = refresh(t, pod, at(14*time.Second))
		assert.True(t, p.Complete)
		assert.Equal(t, []string{"status"}, writes)
		assert.Equal(t, corev1.ConditionTrue, gateOf(pod))
	})
	t.Run("is dropped when the pod has got another revision", func(t *testing.T) {
		pod := start()
		pod.Labels[contract.RevisionLabel] = "w-1"
		pod, p, _ := refresh(t, pod, at(5*time.Second))
		assert.Equal(t, completion.ReasonSuperseded, p.Reason)
		assert.NotContains(t, pod.Annotations, contract.InPlaceUpdateGraceAnnotation)
		assert.Equal(t, "app:v1", pod.Spec.Containers[0].Image)
		pod, p, _ = refresh(t, pod, at(6*time.Second))
		assert.True(t, p.Complete)
		assert.Equal(t, corev1.ConditionTrue, gateOf(pod))
	})
	for name, spoil := range map[string]func(*corev1.Pod){
		"absent":     func(p *corev1.Pod) { delete(p.Annotations, contract.InPlaceUpdateStateAnnotation) },
		"unreadable": func(p *corev1.Pod) { p.Annotations[contract.InPlaceUpdateStateAnnotation] = "{" },
	} {
		t.Run("begins anew when the state is "+name, func(t *testing.T) {
			pod := start()
			spoil(pod)
			pod, p, _ := refresh(t, pod, at(time.Hour))
			assert.Equal(t, completion.ReasonGracePeriod, p.Reason)
			assert.Equal(t, "pod has apps.kruise.io/inplace-update-grace but apps.kruise.io/inplace-update-state not found", p.Message)
			pod, _, _ = refresh(t, pod, at(time.Hour+10*time.Second))
			assert.Equal(t, "app:v2", pod.Spec.Containers[0].Image)
		})
	}
	t.Run("begun by a clock that was ahead", func(t *testing.T) {
		pod, p, writes := refresh(t, start(), at(-5*time.Minute))
		assert.Equal(t, completion.ReasonGracePeriod, p.Reason)
		assert.Equal(t, 10*time.Second, p.RequeueAfter)
		assert.Equal(t, []string{"pod"}, writes)
		pod, p, writes = refresh(t, pod, at(-5*time.Minute+4*time.Second))
		assert.Equal(t, 6*time.Second, p.RequeueAfter)
		assert.Empty(t, writes)
		pod, _, _ = refresh(t, pod, at(-5*time.Minute+10*time.Second))
		assert.Equal(t, "app:v2", pod.Spec.Containers[0].Image)
	})
	t.Run("written by OpenKruise under the legacy keys", func(t *testing.T) {
		pod := start()
		pod.Annotations = map[string]string{
			contract.LegacyInPlaceUpdateStateAnnotation: `{"revision":"w-2","updateTimestamp":"2026-01-01T12:00:00Z","lastContainerStatuses":null}`,
			contract.LegacyInPlaceUpdateGraceAnnotation: `{"revision":"w-2","containerImages":{"app":"app:v2"},"graceSeconds":10,
				"containerRefMetadata":{"app":{"creationTimestamp":null,"labels":{"read":"1"}}},
				"metaDataPatch":"eyJtZXRhZGF0YSI6eyJsYWJlbHMiOnsidmVyc2lvbiI6ImIifX19","oldTemplate":{"spec":{}}}`,
		}
		pod, _, _ = refresh(t, pod, at(10*time.Second))
		assert.Equal(t, "app:v1", pod.Spec.Containers[0].Image, "the period begins anew: nobody knows since when the pod was not ready")
		pod, _, _ = refresh(t, pod, at(20*time.Second))
		assert.Equal(t, "app:v2", pod.Spec.Containers[0].Image)
		assert.Equal(t, "b", pod.Labels["version"])
		assert.Equal(t, "1", pod.Labels["read"])
		assert.Contains(t, pod.Annotations, contract.InPlaceUpdateStateAnnotation)
		assert.Len(t, pod.Annotations, 1, "the legacy keys are gone")
	})
}

func TestUnreadableStateIsOvercomeByBeginningAgain(t *testing.T) {
	v2 := revisionOf("w-2", variant(templateOf("app"), func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].Image = "app:v2"
		t.Labels = map[string]string{"version": "b"}
	}))
	for _, key := range []string{contract.InPlaceUpdateStateAnnotation, contract.InPlaceUpdateGraceAnnotation} {
		pod := runningPod(templateOf("app"), "w-2")
		pod.Status.Conditions[2].Status = corev1.ConditionFalse
		pod.Annotations = map[string]string{key: "garbage"}
		pod, p, writes := refresh(t, pod, at(0))
		require.Equal(t, completion.ReasonUnreadable, p.Reason)
		assert.Contains(t, p.Message, key)
		assert.Empty(t, writes)
		pod = written(t, begin(t, pod, v2, v2, 0, at(0)))
		assert.Equal(t, "app:v2", pod.Spec.Containers[0].Image)
		assert.Equal(t, "b", pod.Labels["version"])
		restarted(pod, "app", "app-1")
		_, p, _ = refresh(t, pod, at(time.Second))
		assert.True(t, p.Complete)
	}
}

func TestHashes(t *testing.T) {
	value := func(values map[string]string) func(*corev1.EnvVar, string, string) string {
		return func(_ *corev1.EnvVar, _, key string) string { return values[key] }
	}
	c := &corev1.Container{Name: "app", Image: "app:v1", Env: []corev1.EnvVar{envFrom("B", "b"), envFrom("A", "a"), {Name: "LITERAL", Value: "x"}}}
	assert.Equal(t, agentreport.TextHash(`[{"name":"A","value":"1"},{"name":"B"}]`), agentreport.EnvHash(c, value(map[string]string{"a": "1"})))
	assert.Equal(t, agentreport.TextHash(`null`), agentreport.EnvHash(&corev1.Container{}, value(nil)))
	assert.Equal(t, agentreport.TextHash(`{"image":"app:v1","name":"app"}`), agentreport.PlainHashes(c)[0])
}

func TestAnnotationsSurviveARoundTrip(t *testing.T) {
	text, id := "1", "containerd://a"
	s := &record.State{
		Revision: "w-1", UpdateTimestamp: at(0), UpdateEnvFromMetadata: true, UpdateResources: true, UpdateImages: true,
		LastContainerStatuses:    map[string]record.ContainerStatus{"a": {ImageID: "x", ContainerID: &id}, "b": {ImageID: "y"}},
		NextContainerImages:      map[string]string{"c": "c:v2"},
		NextContainerRefMetadata: map[string]record.Metadata{"c": {Labels: map[string]*string{"k": &text, "gone": nil}}},
		NextContainerResources:   map[string]corev1.ResourceRequirements{"c": {Limits: quantities("1", "")}},
		PreCheckBeforeNext:       &record.PreCheck{ContainersRequiredReady: []string{"a"}},
		ContainerBatchesRecord:   []record.Batch{{Timestamp: at(0), Containers: []string{"a"}}},
	}
	g := &record.Grace{
		Revision: "w-1", ContainerImages: s.NextContainerImages, ContainerRefMetadata: s.NextContainerRefMetadata,
		ContainerResources: s.NextContainerResources, GraceSeconds: 5, UpdateEnvFromMetadata: true,
		MetadataPatch: record.Plain{Metadata: record.Metadata{Labels: map[string]*string{"k": nil}}, DeleteFinalizers: []string{"f"}}.Patch(),
	}
	c := action.NewPodChange(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		contract.LegacyInPlaceUpdateStateAnnotation: "{}", contract.LegacyInPlaceUpdateGraceAnnotation: "{}",
	}}}, at(0))
	record.WriteState(c, s)
	record.WriteGrace(c, g)
	pod := written(t, c)
	assert.Len(t, pod.Annotations, 2, "legacy keys go with the first write")
	got := record.Read(action.NewPodChange(pod, at(0)))
	require.NoError(t, got.Err)
	assert.JSONEq(t, annotation.Encode(s), annotation.Encode(got.State))
	assert.JSONEq(t, annotation.Encode(g), annotation.Encode(got.Grace))
	assert.Equal(t, record.Plain{Metadata: record.Metadata{Labels: map[string]*string{"k": nil}}, DeleteFinalizers: []string{"f"}}, got.Plain)
}

func TestResizeWhoseRecordWasLostIsAwaited(t *testing.T) {
	v1 := revisionOf("w-1", variant(templateOf("app"), func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].Resources.Requests = quantities("1", "")
		t.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.RestartContainer}}
	}))
	v2 := revisionOf("w-2", variant(v1.Template, resources(nil, quantities("2", ""))))
	v2.Template.Spec.Containers[0].ResizePolicy = v1.Template.Spec.Containers[0].ResizePolicy
	pod := runningPod(v1.Template, "w-1")
	c := begin(t, pod, v1, v2, 0, at(0))
	pod = applied(t, c.Pod, c.Patches()[:1])
	require.Contains(t, pod.Annotations, contract.InPlaceUpdateGraceAnnotation)

	pod, _, writes := refresh(t, pod, at(time.Second))
	assert.Equal(t, []string{"pod"}, writes, "out of service already, resized already")
	pod.Status.ObservedGeneration = pod.Generation
	_, p, _ := refresh(t, pod, at(2*time.Second))
	assert.Equal(t, completion.ReasonResize, p.Reason)
	pod.Status.ContainerStatuses[0].Resources = pod.Spec.Containers[0].Resources.DeepCopy()
	_, p, _ = refresh(t, pod, at(2*time.Second))
	assert.True(t, p.Complete)
}

// A container that a later batch changes again holds up no other one, but the pod cannot serve before it runs what its
// pod says.
func TestAPodServesOnlyWithWhatWasWritten(t *testing.T) {
	v1 := revisionOf("w-1", templateOf("a", "b"))
	image := func(name, a, b string) *Revision {
		return revisionOf(name, variant(v1.Template, func(t *corev1.PodTemplateSpec) {
			t.Spec.Containers[0].Image, t.Spec.Containers[1].Image = a, b
		}))
	}
	v2, v3 := image("w-2", "a:bad", "b:v1"), image("w-3", "a:v3", "b:v2")
	pod := runningPod(v1.Template, "w-1")
	pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, barrier("p_1"))
	pod.Spec.Containers[1].Env = append(pod.Spec.Containers[1].Env, barrier("p_2"))
	pod = written(t, begin(t, pod, v1, v2, 0, at(0)))
	status := running.Status(pod, "a")
	status.State, status.ContainerID, status.Ready = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}, "", false
	pod.Status.ObservedGeneration = pod.Generation
	pod = written(t, begin(t, pod, v2, v3, 0, at(time.Minute)))
	restarted(pod, "b", "b-1")
	pod.Status.ObservedGeneration = pod.Generation
	require.Equal(t, "a:bad", pod.Spec.Containers[0].Image, "b goes first")

	c := action.NewPodChange(pod, at(time.Minute+time.Second))
	PutIntoService(c, allGates)
	assert.Empty(t, subresources(c))
}
