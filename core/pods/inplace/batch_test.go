package inplace

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/inplace/agentreport"
	"github.com/flotilla-project/flotilla/core/pods/inplace/annotation"
	"github.com/flotilla-project/flotilla/core/pods/inplace/completion"
	"github.com/flotilla-project/flotilla/core/pods/inplace/record"
	"github.com/flotilla-project/flotilla/core/pods/inplace/running"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
)

// told lets the node agent tell of the pod's containers: they run with their present environment,
// but for those whose environment it does not know.
func told(pod *corev1.Pod, unknown ...string) *corev1.Pod {
	meta := agentreport.RuntimeContainersMeta{}
	for _, c := range podspec.LongRunning(&pod.Spec) {
		entry := agentreport.RuntimeContainer{Name: c.Name, ContainerID: running.Status(pod, c.Name).ContainerID}
		if !sets.New(unknown...).Has(c.Name) {
			entry.Hashes.ExtractedEnvFromMetadataHash = agentreport.ExpectedEnvHash(c, pod)
		}
		meta.Containers = append(meta.Containers, entry)
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[contract.RuntimeContainersMetaAnnotation] = annotation.Encode(meta)
	return pod
}

// prioritised gives the containers of the pod launch priorities by barrier key.
func prioritised(pod *corev1.Pod, keys map[string]string) *corev1.Pod {
	for name, key := range keys {
		c := running.Container(pod, name)
		c.Env = append(c.Env, barrier(key))
	}
	return pod
}

// TestContainersFollowEachOtherByLaunchPriority is the worked example of a sidecar that reads its
// configuration from an annotation and goes before the main container.
func TestContainersFollowEachOtherByLaunchPriority(t *testing.T) {
	v1 := revisionOf("w-1", variant(templateOf("sidecar", "main"), func(t *corev1.PodTemplateSpec) {
		t.Annotations = map[string]string{"app-config": "one"}
		t.Spec.Containers[0].Env = []corev1.EnvVar{envFrom("APP_CONFIG", "app-config")}
	}))
	v2 := revisionOf("w-2", variant(v1.Template, func(t *corev1.PodTemplateSpec) {
		t.Annotations["app-config"] = "two"
		t.Spec.Containers[1].Image = "main:v2"
	}))
	pod := told(prioritised(runningPod(v1.Template, "w-1"), map[string]string{"sidecar": "p_10", "main": "p_0"}))

	pod = written(t, begin(t, pod, v1, v2, 0, at(0)))
	assert.Equal(t, "two", pod.Annotations["app-config"])
	assert.Equal(t, "main:v1", pod.Spec.Containers[1].Image)
	assert.Equal(t, corev1.ConditionFalse, gateOf(pod))
	assert.JSONEq(t, `{"revision":"w-2","updateTimestamp":"2026-01-01T12:00:00Z","lastContainerStatuses":null,
		"updateEnvFromMetadata":true,"updateImages":true,"nextContainerImages":{"main":"main:v2"},
		"preCheckBeforeNext":{"containersRequiredReady":["sidecar"]},
		"containerBatchesRecord":[{"timestamp":"2026-01-01T12:00:00Z","containers":["sidecar"]}]}`,
		pod.Annotations[contract.InPlaceUpdateStateAnnotation])

	pod, p, writes := refresh(t, pod, at(time.Second))
	assert.Equal(t, completion.ReasonContainer, p.Reason)
	assert.Contains(t, p.Message, "sidecar")
	assert.Empty(t, writes)

	restarted(pod, "sidecar", "sidecar-1")
	_, p, _ = refresh(t, pod, at(time.Second))
	assert.Equal(t, completion.ReasonNodeAgentMissing, p.Reason, "the agent has not told about the new container")

	told(pod)
	_, p, writes = refresh(t, pod, at(time.Second))
	assert.Equal(t, completion.ReasonContainer, p.Reason, "the old container may have crashed just before the write")
	assert.Equal(t, completion.ReadTime-time.Second, p.RequeueAfter)
	assert.Empty(t, writes)

	running.Status(pod, "sidecar").Ready = false
	pod, p, writes = refresh(t, pod, at(completion.ReadTime))
	assert.Equal(t, completion.ReasonNotReady, p.Reason)
	assert.Contains(t, p.Message, "sidecar")
	assert.Empty(t, writes)

	running.Status(pod, "sidecar").Ready = true
	pod, p, writes = refresh(t, pod, at(completion.ReadTime+time.Second))
	assert.Equal(t, completion.ReasonBatch, p.Reason)
	assert.Equal(t, []string{"pod"}, writes)
	assert.Equal(t, "main:v2", pod.Spec.Containers[1].Image)
	assert.JSONEq(t, `{"revision":"w-2","updateTimestamp":"2026-01-01T12:00:00Z",
		"lastContainerStatuses":{"main":{"imageID":"`+imageIDOf("main:v1")+`","containerID":"main-0"}},
		"updateEnvFromMetadata":true,"updateImages":true,
		"containerBatchesRecord":[{"timestamp":"2026-01-01T12:00:00Z","containers":["sidecar"]},
			{"timestamp":"2026-01-01T12:00:06Z","containers":["main"]}]}`,
		pod.Annotations[contract.InPlaceUpdateStateAnnotation])

	restarted(pod, "main", "main-1")
	pod, p, writes = refresh(t, told(pod), at(completion.ReadTime+2*time.Second))
	assert.True(t, p.Complete)
	assert.Equal(t, []string{"status"}, writes)
	assert.Equal(t, corev1.ConditionTrue, gateOf(pod))
}

func TestContainersThatReadOneKeyGoTogether(t *testing.T) {
	v1 := revisionOf("w-1", variant(templateOf("a", "b"), func(t *corev1.PodTemplateSpec) {
		t.Annotations = map[string]string{"cfg": "one"}
		for i := range t.Spec.Containers {
			t.Spec.Containers[i].Env = []corev1.EnvVar{envFrom("CFG", "cfg")}
		}
	}))
	v2 := revisionOf("w-2", variant(v1.Template, func(t *corev1.PodTemplateSpec) {
		t.Annotations["cfg"] = "two"
		t.Spec.Containers[1].Image = "b:v2"
	}))
	pod := told(prioritised(runningPod(v1.Template, "w-1"), map[string]string{"a": "p_5", "b": "p_1"}))
	pod = written(t, begin(t, pod, v1, v2, 0, at(0)))
	s := stateOf(t, pod)
	assert.Equal(t, []string{"a", "b"}, s.ContainerBatchesRecord[0].Containers)
	assert.False(t, s.HasNext())
	assert.Equal(t, "b:v2", pod.Spec.Containers[1].Image)
}

func TestChooseBatch(t *testing.T) {
	value := "x"
	keys := func(names ...string) record.Metadata {
		m := record.Metadata{}
		for _, name := range names {
			m.Set(agentreport.FieldAnnotations, name, &value)
		}
		return m
	}
	pod := prioritised(runningPod(templateOf("a", "b", "c", "d"), "w-1"), map[string]string{"a": "p_10", "b": "p_1", "c": "p_1", "d": "p_0"})
	plain := runningPod(templateOf("a", "b", "c", "d"), "w-1")
	images := func(names ...string) record.Changes {
		ch := record.NewChanges()
		for _, name := range names {
			ch.Images[name] = "v2"
		}
		return ch
	}
	transitive := record.Changes{Metadata: map[string]record.Metadata{"a": keys("1"), "c": keys("1", "2"), "d": keys("2")}, Images: map[string]string{"b": "v2"}}
	for name, tt := range map[string]struct {
		pod  *corev1.Pod
		ch   record.Changes
		way  []string
		want []string
	}{
		"no priorities: all at once":          {plain, images("a", "b", "d"), nil, []string{"a", "b", "d"}},
		"the highest of those that change":    {pod, images("b", "d"), nil, []string{"b"}},
		"equal priorities together":           {pod, images("b", "c", "d"), nil, []string{"b", "c"}},
		"shared keys, transitively":           {pod, transitive, nil, []string{"a", "c", "d"}},
		"behind one that is still on its way": {pod, images("b", "d"), []string{"a"}, []string{"a"}},
		"nothing":                             {pod, record.NewChanges(), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			assert.ElementsMatch(t, tt.want, chooseBatch(action.NewPodChange(tt.pod, at(0)), &record.State{}, tt.ch, sets.New(tt.way...)).UnsortedList())
		})
	}
	mixed := prioritised(runningPod(templateOf("a", "b", "c", "d"), "w-1"), map[string]string{"a": "p_10", "b": "p_1", "c": "odd"})
	assert.ElementsMatch(t, []string{"a", "c", "d"}, chooseBatch(action.NewPodChange(mixed, at(0)), &record.State{}, images("a", "b", "c", "d"), nil).UnsortedList(),
		"containers without priority go first, whatever their barrier is called")
}

func TestRollbackOfAStuckFirstBatch(t *testing.T) {
	v1 := revisionOf("w-1", templateOf("first", "second"))
	v2 := revisionOf("w-2", variant(v1.Template, func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].Image, t.Spec.Containers[1].Image = "first:bad", "second:v2"
	}))
	pod := prioritised(runningPod(v1.Template, "w-1"), map[string]string{"first": "p_10", "second": "p_1"})
	pod = written(t, begin(t, pod, v1, v2, 0, at(0)))
	pod.Status.ObservedGeneration = pod.Generation
	status := running.Status(pod, "first")
	status.Ready, status.State = false, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}
	pod, p, writes := refresh(t, pod, at(time.Hour))
	assert.False(t, p.Complete)
	assert.Empty(t, writes)
	assert.Equal(t, map[string]string{"second": "second:v2"}, stateOf(t, pod).NextContainerImages)

	pod = written(t, begin(t, pod, v2, v1, 0, at(2*time.Hour)))
	assert.Equal(t, "first:v1", pod.Spec.Containers[0].Image)
	assert.False(t, stateOf(t, pod).HasNext(), "the second has the wanted image and is left out")
	pod.Status.ObservedGeneration = pod.Generation
	_, p, _ = refresh(t, pod, at(3*time.Hour))
	assert.False(t, p.Complete, "the first is not running again, though its status still names the old image")
	restarted(pod, "first", "first-1")
	_, p, _ = refresh(t, pod, at(2*time.Hour+time.Second))
	assert.True(t, p.Complete)
}

func TestPendingBatchesAreNotLostToTheNextRevision(t *testing.T) {
	v1 := revisionOf("w-1", variant(templateOf("first", "second"), func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[1].Env = []corev1.EnvVar{envFrom("CFG", "cfg")}
		t.Spec.Containers[1].Resources.Requests = quantities("100m", "")
	}))
	v2 := revisionOf("w-2", variant(v1.Template, func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].Image, t.Spec.Containers[1].Image = "first:v2", "second:v2"
		t.Annotations = map[string]string{"cfg": "two"}
		t.Spec.Containers[1].Resources.Requests = quantities("200m", "")
	}))
	v3 := revisionOf("w-3", variant(v2.Template, func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = "first:v3" }))
	pod := told(prioritised(runningPod(v1.Template, "w-1"), map[string]string{"first": "p_10", "second": "p_1"}))
	pod = written(t, begin(t, pod, v1, v2, 0, at(0)))
	pod = written(t, begin(t, pod, v2, v3, 0, at(time.Second)))
	s := stateOf(t, pod)
	two := "two"
	assert.Equal(t, map[string]string{"second": "second:v2"}, s.NextContainerImages)
	assert.Equal(t, map[string]record.Metadata{"second": {Annotations: map[string]*string{"cfg": &two}}}, s.NextContainerRefMetadata)
	require.Contains(t, s.NextContainerResources, "second")
	assert.True(t, s.UpdateImages && s.UpdateEnvFromMetadata && s.UpdateResources)
	assert.NotContains(t, pod.Annotations, "cfg")
}

func TestStuckContainerThatALaterBatchRepairsHoldsNobodyUp(t *testing.T) {
	image := func(first, second string) *Revision {
		return revisionOf("w-"+first+second, variant(templateOf("first", "second"), func(t *corev1.PodTemplateSpec) {
			t.Spec.Containers[0].Image, t.Spec.Containers[1].Image = "first:"+first, "second:"+second
		}))
	}
	pod := prioritised(runningPod(image("v1", "v1").Template, "w-v1v1"), map[string]string{"first": "p_10", "second": "p_1"})
	pod = written(t, begin(t, pod, image("v1", "v1"), image("v1", "bad"), 0, at(0)))
	pod = written(t, begin(t, pod, image("v1", "bad"), image("v2", "v2"), 0, at(time.Second)))
	assert.Equal(t, "second:bad", pod.Spec.Containers[1].Image)
	restarted(pod, "first", "first-1")
	pod, p, _ := refresh(t, pod, at(2*time.Second))
	assert.Equal(t, completion.ReasonBatch, p.Reason, p.Message)
	assert.Equal(t, "second:v2", pod.Spec.Containers[1].Image)
}

func TestWritesThatBecameEmptyCompleteAtOnce(t *testing.T) {
	// Another author has queued what the pod has already.
	pod := runningPod(templateOf("app"), "w-1")
	pod.Status.Conditions[2].Status = corev1.ConditionFalse
	pod.Annotations = map[string]string{contract.InPlaceUpdateStateAnnotation: `{"revision":"w-1","updateTimestamp":"2026-01-01T12:00:00Z",
		"lastContainerStatuses":null,"nextContainerImages":{"app":"app:v1","gone":"x"},
		"nextContainerResources":{"app":{}},"nextContainerRefMetadata":{"app":{"creationTimestamp":null}},
		"preCheckBeforeNext":{"containersRequiredReady":["app"]}}`}
	running.Status(pod, "app").Ready = false
	pod, p, writes := refresh(t, pod, at(time.Second))
	assert.True(t, p.Complete)
	assert.Equal(t, []string{"status"}, writes)
	assert.False(t, stateOf(t, pod).HasNext())
}

func TestResourcesLeftAloneAreWorkedOff(t *testing.T) {
	v1 := revisionOf("w-1", variant(templateOf("first", "second"), func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[1].Resources.Requests = quantities("100m", "")
	}))
	v2 := revisionOf("w-2", variant(v1.Template, func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].Image = "first:v2"
		t.Spec.Containers[1].Resources.Requests = quantities("200m", "")
	}))
	pod := prioritised(runningPod(v1.Template, "w-1"), map[string]string{"first": "p_10", "second": "p_1"})
	pod = written(t, begin(t, pod, v1, v2, 0, at(0)))
	restarted(pod, "first", "first-1")
	pod, _, writes := refresh(t, pod, at(time.Second))
	assert.Equal(t, []string{"resize", "pod"}, writes)
	running.Status(pod, "second").Resources = pod.Spec.Containers[1].Resources.DeepCopy()
	pod.Status.ObservedGeneration = pod.Generation
	_, p, _ := refresh(t, pod, at(2*time.Second))
	assert.True(t, p.Complete)
}

func TestGateClosesWithTheBatchThatInterrupts(t *testing.T) {
	v1 := revisionOf("w-1", variant(templateOf("first", "second"), func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].Resources.Requests = quantities("100m", "")
	}))
	v2 := revisionOf("w-2", variant(v1.Template, func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].Resources.Requests = quantities("200m", "")
		t.Spec.Containers[1].Image = "second:v2"
	}))
	pod := prioritised(runningPod(v1.Template, "w-1"), map[string]string{"first": "p_10", "second": "p_1"})
	c := begin(t, pod, v1, v2, 0, at(0))
	assert.Equal(t, []string{"resize", "pod"}, subresources(c), "a resize leaves the pod in service")
	pod = written(t, c)
	running.Status(pod, "first").Resources = pod.Spec.Containers[0].Resources.DeepCopy()
	pod.Status.ObservedGeneration = pod.Generation
	pod, _, writes := refresh(t, pod, at(time.Second))
	assert.Equal(t, []string{"status"}, writes)
	assert.Equal(t, corev1.ConditionFalse, gateOf(pod))
	pod, _, writes = refresh(t, pod, at(2*time.Second))
	assert.Equal(t, []string{"pod"}, writes)
	assert.Equal(t, "second:v2", pod.Spec.Containers[1].Image)
}

func BenchmarkRefreshOfSettledPod(b *testing.B) {
	v1 := templateOf("app")
	v2 := variant(v1, func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = "app:v2" })
	pod := written(b, begin(b, runningPod(v1, "w-1"), revisionOf("w-1", v1), revisionOf("w-2", v2), 0, at(0)))
	restarted(pod, "app", "app-1")
	pod, p, _ := refresh(b, pod, at(time.Second))
	require.True(b, p.Complete)
	b.ReportAllocs()
	for b.Loop() {
		Refresh(action.NewPodChange(pod, at(time.Hour)), allGates)
	}
}
