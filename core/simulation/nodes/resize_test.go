package nodes_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/nodes"
)

// resizesOf asks for so much cpu for each of the containers.
func resizesOf(cpu map[string]string) body {
	var containers []any
	for _, name := range slices.Sorted(maps.Keys(cpu)) { // a patch orders them
		containers = append(containers, body{"name": name, "resources": body{"requests": body{"cpu": cpu[name]}}})
	}
	return body{"spec": body{"containers": containers}}
}

func limitTo(memory string) body {
	return body{"spec": body{"containers": []any{body{"name": "main", "resources": body{"limits": body{"memory": memory}}}}}}
}

func cpuOfContainers(pod *corev1.Pod) map[string]string {
	all := map[string]string{}
	for _, s := range pod.Status.ContainerStatuses {
		all[s.Name] = s.Resources.Requests.Cpu().String()
	}
	return all
}

func conditionOf(pod *corev1.Pod, t corev1.PodConditionType) *corev1.PodCondition {
	i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == t })
	if i < 0 {
		return nil
	}
	return &pod.Status.Conditions[i]
}

// A node puts off all that a pod asks for where it cannot give a part of it, and starts containers with what they had.
func TestNodesPutOffAllThatAPodAsksFor(t *testing.T) {
	w := nodes.New(cluster.Options{Seed: 1})
	o := bare("web-1")
	o.Spec.Containers = append(o.Spec.Containers, corev1.Container{Name: "side", Image: "side:v1"})
	for i := range o.Spec.Containers {
		o.Spec.Containers[i].Resources.Requests = oneCPU()
	}
	create(t, w, o)
	w.Advance(time.Minute)
	resize := func(cpu map[string]string) *corev1.Pod {
		p := resizeTo("")
		p.Body = resizesOf(cpu)
		patch(t, w, p)
		w.Advance(time.Minute)
		return latest(w, "web-1")
	}
	pod := resize(map[string]string{"main": "40", "side": "2"})
	assert.Equal(t, map[string]string{"main": "1", "side": "1"}, cpuOfContainers(pod))
	require.NotNil(t, conditionOf(pod, corev1.PodResizePending))
	assert.Equal(t, corev1.PodReasonDeferred, conditionOf(pod, corev1.PodResizePending).Reason)
	pod = resize(map[string]string{"side": "3"})
	assert.Equal(t, map[string]string{"main": "1", "side": "1"}, cpuOfContainers(pod))
	require.NotNil(t, conditionOf(pod, corev1.PodResizePending), "that the other one fits changes nothing")

	patch(t, w, setImage("app:v2"))
	w.Advance(time.Minute)
	pod = latest(w, "web-1")
	assert.Equal(t, map[string]string{"main": "1", "side": "1"}, cpuOfContainers(pod), "it runs anew with what it had")
	assert.EqualValues(t, 1, pod.Status.ContainerStatuses[0].RestartCount)
	pod = resize(map[string]string{"main": "4"})
	assert.Equal(t, map[string]string{"main": "4", "side": "3"}, cpuOfContainers(pod))
	assert.Nil(t, conditionOf(pod, corev1.PodResizePending))
}

// limitedPod is web-1 with a limit of memory.
// The options decide about the room of nodes. A resize that was put off comes when another pod has left the node.
func TestAResizeThatWasPutOffComesWithTheRoom(t *testing.T) {
	reason := func(w *cluster.World, pod *corev1.Pod) string {
		if cpu := pod.Spec.Containers[0].Resources.Requests.Cpu(); cpu.CmpInt64(8) > 0 {
			return corev1.PodReasonInfeasible
		}
		if len(w.Pods()) > 1 {
			return corev1.PodReasonDeferred
		}
		return ""
	}
	w := nodes.New(cluster.Options{Calm: true, Nodes: 1, Room: reason, JudgesResizes: true})
	for _, name := range []string{"web-1", "web-2"} {
		o := bare(name)
		o.Spec.Containers[0].Resources.Requests = oneCPU()
		create(t, w, o)
	}
	w.Advance(time.Minute)
	tooMuch := resizeTo("9")
	_, err := w.Patch(cluster.UserActor, latest(w, "web-1"), tooMuch)
	require.ErrorContains(t, err, "the node has less than container main asks for")

	patch(t, w, resizeTo("2"))
	w.Advance(time.Minute)
	assert.Equal(t, "1", cpuOfContainers(latest(w, "web-1"))["main"])
	require.NoError(t, w.Delete(cluster.UserActor, latest(w, "web-2")))
	w.Advance(time.Minute)
	assert.Equal(t, "2", cpuOfContainers(latest(w, "web-1"))["main"])
	assert.Nil(t, conditionOf(latest(w, "web-1"), corev1.PodResizePending))
}

func limitedPod(memory string) *corev1.Pod {
	o := bare("web-1")
	o.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}
	return o
}

// A container that is down when its limit is raised is started inside the old limit of its pod, and killed again for ever.
func TestHigherLimitsOfContainersThatAreDownLeaveThePodAsItWas(t *testing.T) {
	healed, lost := 0, 0
	for seed := range uint64(40) {
		images := map[string]cluster.Image{"app:v1": {Memory: resource.MustParse("100Mi"), Crashes: 1000}}
		w := nodes.New(cluster.Options{Seed: seed, Images: images})
		create(t, w, limitedPod("64Mi"))
		w.Advance(time.Minute)
		before := latest(w, "web-1")
		require.False(t, ready(before))
		require.Equal(t, "OOMKilled", before.Status.ContainerStatuses[0].LastTerminationState.Terminated.Reason)
		p := resizeTo("")
		p.Body = limitTo("256Mi")
		patch(t, w, p)
		w.Advance(5 * time.Minute)
		after := latest(w, "web-1")
		assert.Equal(t, "256Mi", after.Status.ContainerStatuses[0].Resources.Limits.Memory().String(), "the status says so either way")
		if ready(after) {
			healed++
		} else {
			lost++
		}
	}
	assert.Positive(t, healed)
	assert.Positive(t, lost)
}

// A limit below what a container uses fails, and the container goes on as it is.
func TestLowerLimitsThanWhatIsUsedFail(t *testing.T) {
	w := nodes.New(cluster.Options{Seed: 1, Memory: resource.MustParse("100Mi")})
	create(t, w, limitedPod("256Mi"))
	w.Advance(time.Minute)
	limit := func(memory string) *corev1.Pod {
		p := resizeTo("")
		p.Body = limitTo(memory)
		patch(t, w, p)
		w.Advance(time.Minute)
		return latest(w, "web-1")
	}
	pod := limit("64Mi")
	assert.True(t, ready(pod))
	assert.Equal(t, "256Mi", pod.Status.ContainerStatuses[0].Resources.Limits.Memory().String())
	require.NotNil(t, conditionOf(pod, corev1.PodResizeInProgress))
	assert.Equal(t, corev1.PodReasonError, conditionOf(pod, corev1.PodResizeInProgress).Reason)
	pod = limit("128Mi")
	assert.Nil(t, conditionOf(pod, corev1.PodResizeInProgress))
	assert.Equal(t, "128Mi", pod.Status.ContainerStatuses[0].Resources.Limits.Memory().String())
}
