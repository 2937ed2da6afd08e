package inplace

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/inplace/agentreport"
	"github.com/flotilla-project/flotilla/core/pods/inplace/annotation"
	"github.com/flotilla-project/flotilla/core/pods/inplace/completion"
	"github.com/flotilla-project/flotilla/core/pods/inplace/record"
	"github.com/flotilla-project/flotilla/core/pods/inplace/running"
)

// updatingPod is a pod whose only container app is on its way from app:v1 to the image; the status
// shows the container as it was.
func updatingPod(t *testing.T, image string) *corev1.Pod {
	t.Helper()
	v1 := templateOf("app")
	v2 := variant(v1, func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = image })
	pod := written(t, begin(t, runningPod(v1, "w-1"), revisionOf("w-1", v1), revisionOf("w-2", v2), 0, at(0)))
	pod.Status.ObservedGeneration = pod.Generation
	return pod
}

func TestImageCompletion(t *testing.T) {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	tests := []struct {
		name     string
		wanted   string
		status   corev1.ContainerStatus
		behind   bool // the kubelet has not observed the spec
		after    time.Duration
		complete bool
	}{
		{name: "the recorded container is still there", wanted: "app:v2",
			status: corev1.ContainerStatus{ContainerID: "app-0", Image: "app:v1", ImageID: imageIDOf("app:v1"), State: running}},
		{name: "and reports the wanted name, because both are names of one image", wanted: "app:v2",
			status: corev1.ContainerStatus{ContainerID: "app-0", Image: "app:v2", ImageID: imageIDOf("app:v1"), State: running}, after: time.Hour},
		{name: "new container with the wanted image", wanted: "app:v2",
			status: corev1.ContainerStatus{ContainerID: "app-1", Image: "app:v2", ImageID: imageIDOf("app:v2"), State: running}, complete: true},
		{name: "it is not ready, which is not asked", wanted: "app:v2",
			status: corev1.ContainerStatus{ContainerID: "app-1", Image: "app:v2", ImageID: imageIDOf("app:v2"),
				State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}, complete: true},
		{name: "before the kubelet has observed the spec", wanted: "app:v2", behind: true, after: time.Hour,
			status: corev1.ContainerStatus{ContainerID: "app-1", Image: "app:v2", ImageID: imageIDOf("app:v2"), State: running}},
		{name: "new image ID under a name that says nothing", wanted: "app:v2",
			status: corev1.ContainerStatus{ContainerID: "app-1", Image: "sha256:abc", ImageID: "app@sha256:new", State: running}, complete: true},
		{name: "same image ID, normalised name", wanted: "docker.io/library/app:v1",
			status: corev1.ContainerStatus{ContainerID: "app-1", Image: "app:v1", ImageID: imageIDOf("app:v1"), State: running}, complete: true},
		{name: "two names of one image, at once", wanted: "app:v2", after: completion.SettleTime - time.Second,
			status: corev1.ContainerStatus{ContainerID: "app-1", Image: "app:v1", ImageID: imageIDOf("app:v1"), State: running, Ready: true}},
		{name: "two names of one image, settled", wanted: "app:v2", after: completion.SettleTime,
			status: corev1.ContainerStatus{ContainerID: "app-1", Image: "app:v1", ImageID: imageIDOf("app:v1"), State: running, Ready: true}, complete: true},
		{name: "one in a crash loop that was restarted before the kubelet saw the change, on a node that fails then", wanted: "app:v2", after: completion.UnsureTime - time.Second,
			status: corev1.ContainerStatus{ContainerID: "app-1", Image: "app:v1", ImageID: imageIDOf("app:v1"), State: running}},
		{name: "two names of one image that never gets ready", wanted: "app:v2", after: completion.UnsureTime,
			status: corev1.ContainerStatus{ContainerID: "app-1", Image: "app:v1", ImageID: imageIDOf("app:v1"), State: running}, complete: true},
		{name: "the old container crashed and waits, to be replaced", wanted: "app:v2", after: completion.SettleTime,
			status: corev1.ContainerStatus{ContainerID: "app-1", Image: "app:v1", ImageID: imageIDOf("app:v1"),
				State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}},
		{name: "one that was restarted before the kubelet saw the change is down, as the wanted image cannot be pulled", wanted: "app:v2", after: time.Hour,
			status: corev1.ContainerStatus{ContainerID: "app-1", Image: "app:v1", ImageID: imageIDOf("app:v1"),
				State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}},
		{name: "no status", wanted: "app:v2", after: time.Hour},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pod := updatingPod(t, tt.wanted)
			if tt.behind {
				pod.Status.ObservedGeneration--
			}
			tt.status.Name = "app"
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{tt.status}
			_, p, _ := refresh(t, pod, at(tt.after))
			assert.Equal(t, tt.complete, p.Complete, p.Message)
		})
	}
}

func TestTwoNamesOfOneImageWakeTheWorkload(t *testing.T) {
	pod := updatingPod(t, "app:v2")
	pod.Status.ContainerStatuses[0].ContainerID = "app-1"
	_, p, _ := refresh(t, pod, at(3*time.Second))
	assert.Equal(t, 7*time.Second, p.RequeueAfter)
}

func TestNodeAgentsHashIsProof(t *testing.T) {
	pod := updatingPod(t, "app:v2")
	pod.Status.ContainerStatuses[0].ContainerID = "app-1" // still under the old name and ID
	hash := agentreport.PlainHashes(&pod.Spec.Containers[0])[0]
	pod.Annotations[contract.RuntimeContainersMetaAnnotation] = annotation.Encode(agentreport.RuntimeContainersMeta{Containers: []agentreport.RuntimeContainer{
		{Name: "app", ContainerID: "app-1", Hashes: agentreport.ContainerHashes{PlainHash: hash}},
	}})
	_, p, _ := refresh(t, pod, at(time.Second))
	assert.True(t, p.Complete)
}

func TestObservedGenerationIsNotAskedOfOldKubelets(t *testing.T) {
	pod := updatingPod(t, "app:v2")
	restarted(pod, "app", "app-1")
	pod.Status.ObservedGeneration = 0
	_, p, _ := refresh(t, pod, at(time.Second))
	assert.True(t, p.Complete)
}

func TestIntermediateImageDoesNotCompleteTheNextUpdate(t *testing.T) {
	image := func(tag string) *Revision {
		return revisionOf("w-"+tag, variant(templateOf("app"), func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = "app:" + tag }))
	}
	pod := updatingPod(t, "app:v2")
	pod = written(t, begin(t, pod, image("v2"), image("v3"), 0, at(time.Second)))
	none := ""
	assert.Equal(t, record.ContainerStatus{ContainerID: &none}, stateOf(t, pod).LastContainerStatuses["app"], "what is shown next may be v1, v2 or v3")

	shown := pod.DeepCopy()
	restarted(shown, "app", "app-1")
	status := running.Status(shown, "app")
	status.Image, status.ImageID = "app:v2", imageIDOf("app:v2")
	_, p, _ := refresh(t, shown, at(time.Minute))
	assert.False(t, p.Complete, "v2 is not v3")

	restarted(shown, "app", "app-2")
	_, p, _ = refresh(t, shown, at(time.Minute))
	assert.True(t, p.Complete)

	restarted(shown, "app", "app-3")
	status.Image = "app:another-name"
	_, p, _ = refresh(t, shown, at(completion.UnsureTime))
	assert.False(t, p.Complete)
	_, p, _ = refresh(t, shown, at(completion.UnsureTime+time.Second))
	assert.True(t, p.Complete, "no naming hangs an update for ever")
}

func TestRollbackBeforeTheKubeletLookedCompletes(t *testing.T) {
	v1 := revisionOf("w-1", templateOf("app"))
	v2 := revisionOf("w-2", variant(v1.Template, func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = "app:v2" }))
	pod := written(t, begin(t, runningPod(v1.Template, "w-1"), v1, v2, 0, at(0)))
	pod = written(t, begin(t, pod, v2, v1, 0, at(time.Second)))
	pod.Status.ObservedGeneration = pod.Generation // the container was never replaced
	_, p, _ := refresh(t, pod, at(2*time.Second))
	assert.True(t, p.Complete)
}

func TestCrashLoopIsLeftForward(t *testing.T) {
	v1 := revisionOf("w-1", templateOf("app"))
	v2 := revisionOf("w-2", variant(v1.Template, func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = "app:v2" }))
	pod := runningPod(v1.Template, "w-1")
	pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	pod = written(t, begin(t, pod, v1, v2, 0, at(0)))
	pod.Status.ObservedGeneration = pod.Generation
	none := ""
	assert.Equal(t, record.ContainerStatus{ImageID: imageIDOf("app:v1"), ContainerID: &none}, stateOf(t, pod).LastContainerStatuses["app"])

	status := running.Status(pod, "app")
	status.ContainerID, status.State = "app-1", corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	_, p, _ := refresh(t, pod, at(time.Second))
	assert.False(t, p.Complete, "one more restart of the old image")
	restarted(pod, "app", "app-2")
	status.Image = "sha256:config"
	_, p, _ = refresh(t, pod, at(2*time.Second))
	assert.True(t, p.Complete, "another image than the old one, whatever the runtime calls it")
}

func TestNothingIsRecordedFromAStatusOfAnEarlierSpec(t *testing.T) {
	v1 := revisionOf("w-1", templateOf("app"))
	v2 := revisionOf("w-2", variant(v1.Template, func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = "app:v2" }))
	pod := runningPod(v1.Template, "w-1")
	pod.Generation++ // somebody else's write
	pod = written(t, begin(t, pod, v1, v2, 0, at(0)))
	none := ""
	assert.Equal(t, record.ContainerStatus{ContainerID: &none}, stateOf(t, pod).LastContainerStatuses["app"])
}

func TestStatesThatOpenKruiseWrote(t *testing.T) {
	state := `{"revision":"w-2","updateTimestamp":"2026-01-01T12:00:00Z","lastContainerStatuses":{"app":{"imageID":"app@sha256:1"}}}`
	tests := []struct {
		name, wanted, image, imageID string
		hash                         bool
		complete                     bool
	}{
		{"other image ID", "app:v2", "app:v1", "app@sha256:2", false, true},
		{"same image ID, old name", "app:v2", "app:v1", "app@sha256:1", false, false},
		{"same image ID, new name", "app:v2", "docker.io/library/app:v2", "app@sha256:1", false, true},
		{"registry with a port", "registry:5000/app", "registry:5000/app:latest", "app@sha256:1", false, true},
		{"same image ID, hash of the new spec", "app:v2", "app:v1", "app@sha256:1", true, true},
	}
	for _, key := range []string{contract.InPlaceUpdateStateAnnotation, contract.LegacyInPlaceUpdateStateAnnotation} {
		for _, tt := range tests {
			t.Run(key+" "+tt.name, func(t *testing.T) {
				pod := runningPod(templateOf("app"), "w-2")
				pod.Spec.Containers[0].Image = tt.wanted
				pod.Status.Conditions[2].Status = corev1.ConditionFalse
				pod.Annotations = map[string]string{key: state}
				pod.Status.ContainerStatuses[0].Image, pod.Status.ContainerStatuses[0].ImageID = tt.image, tt.imageID
				if tt.hash {
					pod.Annotations[contract.RuntimeContainersMetaAnnotation] = annotation.Encode(agentreport.RuntimeContainersMeta{Containers: []agentreport.RuntimeContainer{
						{Name: "app", ContainerID: "app-0", Hashes: agentreport.ContainerHashes{PlainHash: agentreport.PlainHashes(&pod.Spec.Containers[0])[1]}},
					}})
				}
				_, p, _ := refresh(t, pod, at(0))
				assert.Equal(t, tt.complete, p.Complete)
			})
		}
	}
}

// What hung under OpenKruise goes on after the takeover: two names of one image, of which the runtime
// reports the other. A kubelet that has seen the new name stops the container before it pulls.
func TestTwoNamesOfOneImageInAStateOfOpenKruise(t *testing.T) {
	pod := runningPod(templateOf("app"), "w-2")
	pod.Spec.Containers[0].Image = "app:v2"
	pod.Status.Conditions[2].Status = corev1.ConditionFalse
	pod.Annotations = map[string]string{contract.InPlaceUpdateStateAnnotation: `{"revision":"w-2","updateTimestamp":"2026-01-01T12:00:00Z",` +
		`"lastContainerStatuses":{"app":{"imageID":"` + imageIDOf("app:v1") + `"}}}`}
	_, p, _ := refresh(t, pod, at(completion.UnsureTime-3*time.Second))
	assert.False(t, p.Complete)
	assert.Equal(t, 3*time.Second, p.RequeueAfter)
	after, p, _ := refresh(t, pod, at(completion.UnsureTime))
	assert.True(t, p.Complete, p.Message)
	assert.Equal(t, corev1.ConditionTrue, gateOf(after))

	for name, change := range map[string]func(*corev1.PodStatus){
		"pulling":             func(s *corev1.PodStatus) { s.ContainerStatuses[0].State = corev1.ContainerState{} },
		"kubelet behind":      func(s *corev1.PodStatus) { s.ObservedGeneration-- },
		"kubelet of old days": func(s *corev1.PodStatus) { s.ObservedGeneration = 0 },
	} {
		waiting := pod.DeepCopy()
		waiting.Generation, waiting.Status.ObservedGeneration = 2, 2
		change(&waiting.Status)
		_, p, _ := refresh(t, waiting, at(time.Hour))
		assert.False(t, p.Complete, name)
	}
}

func TestUnfinishedContainersOfAnEarlierUpdateAreAwaited(t *testing.T) {
	v1 := revisionOf("w-1", templateOf("app", "log"))
	v2 := revisionOf("w-2", variant(v1.Template, func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = "app:v2" }))
	v3 := revisionOf("w-3", variant(v2.Template, func(t *corev1.PodTemplateSpec) { t.Spec.Containers[1].Image = "log:v2" }))
	pod := written(t, begin(t, runningPod(v1.Template, "w-1"), v1, v2, 0, at(0)))
	pod = written(t, begin(t, pod, v2, v3, 0, at(time.Second)))
	s := stateOf(t, pod)
	assert.Equal(t, "app-0", *s.LastContainerStatuses["app"].ContainerID)
	assert.Equal(t, []string{"app", "log"}, s.ContainerBatchesRecord[0].Containers)

	restarted(pod, "log", "log-1")
	_, p, _ := refresh(t, pod, at(2*time.Second))
	require.False(t, p.Complete)
	assert.Contains(t, p.Message, "container app")
	restarted(pod, "app", "app-1")
	_, p, _ = refresh(t, pod, at(2*time.Second))
	assert.True(t, p.Complete)
}

func TestAnOpenGateNeedsNoProofAgain(t *testing.T) {
	// The node agent that proved the end of the last update is gone; the next one changes another container.
	v1 := revisionOf("w-1", templateOf("app", "log"))
	v2 := revisionOf("w-2", variant(v1.Template, func(t *corev1.PodTemplateSpec) { t.Spec.Containers[1].Image = "log:v2" }))
	pod := runningPod(v1.Template, "w-1")
	pod.Annotations = map[string]string{contract.InPlaceUpdateStateAnnotation: `{"revision":"w-1","updateTimestamp":null,
		"updateEnvFromMetadata":true,"lastContainerStatuses":{"app":{"imageID":"` + imageIDOf("app:v1") + `"}}}`}
	running.Status(pod, "app").Image = "app:another-name"
	pod = written(t, begin(t, pod, v1, v2, 0, at(0)))
	restarted(pod, "log", "log-1")
	_, p, _ := refresh(t, pod, at(time.Second))
	assert.True(t, p.Complete, p.Message)
}

func TestPodsWithoutGateHaveTheSameFlow(t *testing.T) {
	v1 := revisionOf("w-1", templateOf("app"))
	v2 := revisionOf("w-2", variant(v1.Template, func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = "app:v2" }))
	pod := runningPod(v1.Template, "w-1")
	pod.Spec.ReadinessGates, pod.Status.Conditions = nil, nil
	c := begin(t, pod, v1, v2, 0, at(0))
	assert.Equal(t, []string{"pod"}, subresources(c))
	pod = written(t, c)
	_, p, _ := refresh(t, pod, at(0))
	assert.False(t, p.Complete)
	restarted(pod, "app", "app-1")
	_, p, writes := refresh(t, pod, at(0))
	assert.True(t, p.Complete)
	assert.Empty(t, writes)
}

func TestGateLeftClosedByALostWriteOpensAgain(t *testing.T) {
	pod := runningPod(templateOf("app"), "w-1")
	pod.Status.Conditions[2].Status = corev1.ConditionFalse
	pod, p, _ := refresh(t, pod, at(0))
	assert.True(t, p.Complete)
	assert.Equal(t, corev1.ConditionTrue, gateOf(pod))

	fresh := runningPod(templateOf("app"), "w-1")
	fresh.Status.Conditions = nil
	_, p, writes := refresh(t, fresh, metav1.Time{})
	assert.True(t, p.Complete)
	assert.Empty(t, writes, "the first True of a new pod is the lifecycle's")
}
