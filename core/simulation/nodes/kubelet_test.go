package nodes_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/nodes"
)

func oneCPU() corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
}

func latest(w *nodes.World, name string) *corev1.Pod {
	return cluster.Get[*corev1.Pod](w.View(nil), namespace, name)
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func patch(t *testing.T, w *nodes.World, p action.Patch) {
	t.Helper()
	_, err := w.Patch(cluster.OperatorActor, bare("web-1"), p)
	require.NoError(t, err)
}

func setImage(image string) action.Patch {
	return action.Patch{Body: body{"spec": body{"containers": []any{body{"name": "main", "image": image}}}}}
}

func TestNewImageMeansNewContainer(t *testing.T) {
	early := 0
	for seed := range uint64(50) {
		w := nodes.New(cluster.Options{Seed: seed})
		create(t, w, bare("web-1"))
		w.Advance(time.Minute)
		before := latest(w, "web-1")
		require.True(t, ready(before))
		patch(t, w, setImage("app:v2"))
		misled := false
		w.OnEvent(func(e cluster.Event) {
			if pod, ok := e.Object.(*corev1.Pod); ok && pod.Status.ObservedGeneration == 2 &&
				pod.Status.ContainerStatuses[0].ContainerID == before.Status.ContainerStatuses[0].ContainerID {
				misled = true
			}
		})
		w.Advance(time.Minute)
		if misled {
			early++
		}
		after := latest(w, "web-1")
		was, is := before.Status.ContainerStatuses[0], after.Status.ContainerStatuses[0]
		assert.True(t, ready(after))
		assert.NotEqual(t, was.ContainerID, is.ContainerID)
		assert.NotEqual(t, was.ImageID, is.ImageID)
		assert.Equal(t, was.RestartCount+1, is.RestartCount)
		assert.Equal(t, "app:v2", is.Image)
		assert.Equal(t, after.Generation, after.Status.ObservedGeneration)
		assert.Equal(t, before.Status.PodIP, after.Status.PodIP)
		assert.True(t, w.Quiet())
	}
	assert.Greater(t, early, 10, "often the generation shows before the containers")
}

func TestTwoTagsOfOneImageKeepItsID(t *testing.T) {
	oldName := 0
	for seed := range uint64(40) {
		w := nodes.New(cluster.Options{Seed: seed, Images: map[string]cluster.Image{"app:v1": {Digest: "d"}, "app:v2": {Digest: "d"}}})
		create(t, w, bare("web-1"))
		w.Advance(time.Minute)
		before := latest(w, "web-1").Status.ContainerStatuses[0]
		patch(t, w, setImage("app:v2"))
		w.Advance(time.Minute)
		after := latest(w, "web-1").Status.ContainerStatuses[0]
		assert.Equal(t, before.ImageID, after.ImageID)
		assert.NotEqual(t, before.ContainerID, after.ContainerID)
		if after.Image == "app:v1" {
			oldName++
		}
	}
	assert.Positive(t, oldName, "now and then the runtime names the other tag")
}

func TestImageTakenBackInTimeRestartsNothing(t *testing.T) {
	spared := 0
	for seed := range uint64(40) {
		w := nodes.New(cluster.Options{Seed: seed})
		create(t, w, bare("web-1"))
		w.Advance(time.Minute)
		before := latest(w, "web-1").Status.ContainerStatuses[0]
		patch(t, w, setImage("app:v2"))
		w.Advance(1500 * time.Millisecond)
		noticed := latest(w, "web-1").Status.ObservedGeneration == 2
		patch(t, w, setImage("app:v1"))
		w.Advance(time.Minute)
		pod := latest(w, "web-1")
		assert.EqualValues(t, 3, pod.Status.ObservedGeneration)
		assert.Equal(t, "app:v1", pod.Status.ContainerStatuses[0].Image)
		assert.True(t, ready(pod))
		if noticed && before.ContainerID == pod.Status.ContainerStatuses[0].ContainerID {
			spared++
		}
	}
	assert.Positive(t, spared, "a container that was about to stop goes on")
}

func TestTransitionTimesMoveWithTheStatusOnly(t *testing.T) {
	w := nodes.New(cluster.Options{Seed: 1})
	create(t, w, bare("web-1"))
	w.Advance(time.Minute)
	at := func(c corev1.PodConditionType) time.Time {
		for _, have := range latest(w, "web-1").Status.Conditions {
			if have.Type == c {
				return have.LastTransitionTime.Time
			}
		}
		return time.Time{}
	}
	scheduled, turnedReady := at(corev1.PodScheduled), at(corev1.PodReady)
	patch(t, w, setImage("app:v2"))
	w.Advance(time.Minute)
	assert.Equal(t, scheduled, at(corev1.PodScheduled))
	assert.True(t, at(corev1.PodReady).After(turnedReady))
}

func TestBadImagesShowTheirTrouble(t *testing.T) {
	for reason, image := range map[string]cluster.Image{
		"CrashLoopBackOff": {CrashLoop: true}, "ImagePullBackOff": {PullError: true},
	} {
		w := nodes.New(cluster.Options{Seed: 4, Images: map[string]cluster.Image{"app:v1": image}})
		create(t, w, bare("web-1"))
		w.Advance(10 * time.Minute)
		pod := latest(w, "web-1")
		assert.False(t, ready(pod))
		require.NotNil(t, pod.Status.ContainerStatuses[0].State.Waiting)
		assert.Equal(t, reason, pod.Status.ContainerStatuses[0].State.Waiting.Reason)
		assert.True(t, w.Quiet(), "trouble does not keep the world awake")
		patch(t, w, setImage("app:v2"))
		w.Advance(time.Minute)
		assert.True(t, ready(latest(w, "web-1")))
	}
}

func TestReadinessGatesHoldReady(t *testing.T) {
	w := nodes.New(cluster.Options{Seed: 1})
	o := bare("web-1")
	o.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/gate"}}
	create(t, w, o)
	w.Advance(time.Minute)
	assert.False(t, ready(latest(w, "web-1")))
	patch(t, w, action.Patch{Subresource: "status", Body: body{"status": body{"conditions": []any{
		body{"type": "example.com/gate", "status": "True"},
	}}}})
	w.Advance(time.Minute)
	assert.True(t, ready(latest(w, "web-1")))
}

func resizeTo(cpu string) action.Patch {
	return action.Patch{Subresource: "resize", Body: body{"spec": body{"containers": []any{
		body{"name": "main", "resources": body{"requests": body{"cpu": cpu}}},
	}}}}
}

func TestResizeShowsInTheStatus(t *testing.T) {
	for _, policy := range []corev1.ResourceResizeRestartPolicy{corev1.NotRequired, corev1.RestartContainer} {
		w := nodes.New(cluster.Options{Seed: 1})
		o := bare("web-1")
		o.Spec.Containers[0].Resources.Requests = oneCPU()
		o.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceCPU, RestartPolicy: policy}}
		create(t, w, o)
		w.Advance(time.Minute)
		patch(t, w, resizeTo("100"))
		w.Advance(time.Minute)
		pod := latest(w, "web-1")
		assert.Equal(t, "1", pod.Status.ContainerStatuses[0].Resources.Requests.Cpu().String(), "no node has that much")
		assert.True(t, hasCondition(pod, corev1.PodResizePending))
		patch(t, w, resizeTo("2"))
		w.Advance(time.Minute)
		pod = latest(w, "web-1")
		assert.Equal(t, "2", pod.Status.ContainerStatuses[0].Resources.Requests.Cpu().String())
		assert.False(t, hasCondition(pod, corev1.PodResizePending))
		assert.True(t, ready(pod))
		restarts := int32(0)
		if policy == corev1.RestartContainer {
			restarts = 1
		}
		assert.Equal(t, restarts, pod.Status.ContainerStatuses[0].RestartCount)
	}
}

// A node puts off what it cannot give to a running pod now, can never give what it does not have, and a newer server
// refuses the latter.
func TestNodesPutResizesOff(t *testing.T) {
	resized := func(options cluster.Options, cpu string) (*nodes.World, error) {
		w := nodes.New(options)
		o := bare("web-1")
		o.Spec.Containers[0].Resources.Requests = oneCPU()
		create(t, w, o)
		w.Advance(time.Minute)
		_, err := w.Patch(cluster.UserActor, bare("web-1"), resizeTo(cpu))
		w.Advance(time.Minute)
		return w, err
	}
	for cpu, reason := range map[string]string{"40": corev1.PodReasonDeferred, "100": corev1.PodReasonInfeasible} {
		w, err := resized(cluster.Options{Seed: 1}, cpu)
		require.NoError(t, err)
		conditions := latest(w, "web-1").Status.Conditions
		assert.True(t, slices.ContainsFunc(conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodResizePending && c.Status == corev1.ConditionTrue && c.Reason == reason
		}), "%v", conditions)
	}
	_, err := resized(cluster.Options{Seed: 1, JudgesResizes: true}, "100")
	assert.True(t, apierrors.IsForbidden(err) && apierrors.HasStatusCause(err, progress.NodeCapacityCause), "%v", err)
}

func hasCondition(pod *corev1.Pod, t corev1.PodConditionType) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == t {
			return true
		}
	}
	return false
}

func TestSilentNodesHoldTheirPods(t *testing.T) {
	w := nodes.New(cluster.Options{Nodes: 1})
	create(t, w, bare("web-1"))
	w.Advance(time.Minute)
	w.FailNode("node-0")
	assert.False(t, ready(latest(w, "web-1")))
	require.NoError(t, w.Delete(cluster.UserActor, bare("web-1")))
	w.Advance(time.Hour)
	require.NotNil(t, latest(w, "web-1"), "nobody confirms the deletion")
	w.RecoverNode("node-0")
	w.Advance(time.Minute)
	assert.Nil(t, latest(w, "web-1"))

	create(t, w, bare("web-2"))
	w.Advance(time.Minute)
	w.FailNode("node-0")
	w.RecoverNode("node-0")
	w.Advance(time.Minute)
	assert.True(t, ready(latest(w, "web-2")))
}

func TestNodesThatAreFullRejectPods(t *testing.T) {
	w := nodes.New(cluster.Options{Nodes: 1})
	w.RejectPods("node-0", w.Now().Add(30*time.Second))
	create(t, w, bare("web-1"))
	w.Advance(time.Minute)
	pod := latest(w, "web-1")
	assert.Equal(t, corev1.PodFailed, pod.Status.Phase)
	assert.Equal(t, "OutOfcpu", pod.Status.Reason)
	assert.Empty(t, pod.Status.ContainerStatuses, "no container ran")
	assert.False(t, ready(pod))
	create(t, w, bare("web-2"))
	w.Advance(time.Minute)
	assert.True(t, ready(latest(w, "web-2")), "the time is over")
	require.NoError(t, w.Delete(cluster.UserActor, bare("web-1")))
	w.Advance(time.Minute)
	assert.Nil(t, latest(w, "web-1"))
}

func TestUnschedulablePodsSaySo(t *testing.T) {
	w := nodes.New(cluster.Options{Unschedulable: func(*corev1.Pod) bool { return true }})
	create(t, w, bare("web-1"))
	w.Advance(time.Minute)
	pod := latest(w, "web-1")
	assert.Empty(t, pod.Spec.NodeName)
	require.Len(t, pod.Status.Conditions, 1)
	assert.Equal(t, corev1.PodReasonUnschedulable, pod.Status.Conditions[0].Reason)
}

func TestPodsThatRanBeforeGoOn(t *testing.T) {
	first := nodes.New(cluster.Options{Seed: 1})
	create(t, first, bare("web-1"))
	first.Advance(time.Minute)
	before := latest(first, "web-1")
	w := nodes.New(cluster.Options{Seed: 2}, before)
	assert.True(t, w.Quiet())
	assert.Equal(t, before.Status, latest(w, "web-1").Status)
	assert.Equal(t, before.UID, latest(w, "web-1").UID)
	patch(t, w, setImage("app:v2"))
	w.Advance(time.Minute)
	after := latest(w, "web-1")
	assert.True(t, ready(after))
	assert.NotEqual(t, before.Status.ContainerStatuses[0].ContainerID, after.Status.ContainerStatuses[0].ContainerID)
	assert.Equal(t, before.Status.PodIP, after.Status.PodIP)
}
