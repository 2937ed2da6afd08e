package cloneset

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flotilla-project/flotilla/core/api/workload"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/forecasts"
	"github.com/flotilla-project/flotilla/test/story"
)

// requests returns a change that requests the amount of cpu and 32 MiB of memory.
func requests(cpu string) func(*v1beta1.CloneSet) {
	return func(set *v1beta1.CloneSet) {
		set.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("32Mi"),
		}
	}
}

func limits(cpu, memory string) func(*v1beta1.CloneSet) {
	return func(set *v1beta1.CloneSet) {
		set.Spec.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
		}
	}
}

func restartForMemory(set *v1beta1.CloneSet) {
	set.Spec.Template.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{
		{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.NotRequired},
		{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer},
	}
}

// running returns the container IDs of the pods, the limits of the last one and the sum of restarts, as the kubelet
// reports them. Each pod has one container.
func running(t *testing.T, set *v1beta1.CloneSet) (ids []string, cpu, memory string, restarts int32) {
	t.Helper()
	for _, o := range podsOf(t, set) {
		status := o.Status.ContainerStatuses[0]
		ids = append(ids, status.ContainerID)
		cpu, memory = status.Resources.Limits.Cpu().String(), status.Resources.Limits.Memory().String()
		restarts += status.RestartCount
	}
	return ids, cpu, memory, restarts
}

// Resources are raised and lowered: the containers keep running, and no pod is out of service at any time.
func TestResourcesChangeWithoutARestart(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 2, requests("20m"), limits("200m", "64Mi"))
	givenSet(t, set)
	before := story.Identities(podsOf(t, set))
	ids, _, _, _ := running(t, set)
	end := world.Always(t, set.Namespace, story.AtLeastReady(2))
	for _, want := range []struct{ cpu, memory string }{{"400m", "128Mi"}, {"100m", "128Mi"}} {
		rolls(t, set, limits(want.cpu, want.memory))
		now, cpu, memory, restarts := running(t, set)
		assert.Equal(t, ids, now)
		assert.Equal(t, want.cpu, cpu)
		assert.Equal(t, want.memory, memory)
		assert.Zero(t, restarts)
	}
	end()
	assert.Equal(t, before, story.Identities(podsOf(t, set)))
}

// A container whose resizePolicy asks for a restart for memory restarts in its pod, and only for memory.
func TestMemoryChangesWithARestartWhereAskedFor(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 1, requests("20m"), limits("200m", "64Mi"), restartForMemory)
	givenSet(t, set)
	before := story.Identities(podsOf(t, set))
	rolls(t, set, limits("300m", "64Mi"))
	_, cpu, _, restarts := running(t, set)
	assert.Equal(t, "300m", cpu)
	assert.Zero(t, restarts)
	rolls(t, set, limits("300m", "128Mi"))
	_, _, memory, restarts := running(t, set)
	assert.Equal(t, "128Mi", memory)
	assert.EqualValues(t, 1, restarts)
	assert.Equal(t, before, story.Identities(podsOf(t, set)))
}

// An edit changes an image and requests more than any node has. From Kubernetes 1.36 on the API server does not accept it, and
// the pods stay in service as they are. Kubelets before do not give the resources, and the image arrives: at one pod, as that one
// waits for its resources and counts against maxUnavailable. The set's condition shows it, and a valid edit resolves it.
func TestARefusedResizeIsFixedForward(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 2, requests("20m"))
	givenSet(t, set)
	before := story.Identities(podsOf(t, set))
	reason, first, inService := "ResizeInfeasible", "v2", 1
	if world.Since(t, 36) {
		reason, first, inService = "NodeTooSmall", "v1", 2
	}
	end := world.Always(t, set.Namespace, story.AtLeastReady(inService))
	rollout := forecasts.Edit(t, world, set, func(s *v1beta1.CloneSet) {
		image("v2")(s)
		requests("100k")(s)
	})
	story.WaitsFor(t, world, set, reason, "web-")
	story.Reaches(t, world, set, "both pods in service", func(set *v1beta1.CloneSet) error {
		images := slices.Sorted(slices.Values(story.Images(podsOf(t, set))))
		return story.Want(set.Status.ReadyReplicas == 2 && slices.Equal(images, []string{app + "v1", app + first}), "images are %v", images)
	})
	end()
	rollout.ComesTrue(t)
	end = world.Always(t, set.Namespace, story.AtLeastReady(1))
	rolls(t, set, requests("30m"))
	end()
	after := podsOf(t, set)
	assert.Equal(t, before, story.Identities(after))
	assert.Equal(t, []string{app + "v2", app + "v2"}, story.Images(after))
	assert.EqualValues(t, 2, set.Status.UpdatedReplicas)
}

// Two pods request more than half of their node each: the second one is deferred, and a valid edit resolves it.
func TestADeferredResizeIsFixedForward(t *testing.T) {
	t.Parallel()
	nodes := &corev1.NodeList{}
	require.NoError(t, world.Client.List(t.Context(), nodes))
	node := nodes.Items[len(nodes.Items)-1]
	tooMuch := resource.NewMilliQuantity(node.Status.Allocatable.Cpu().MilliValue()*55/100, resource.DecimalSI)
	set := newSet(world.Namespace(t), 2, requests("20m"), func(s *v1beta1.CloneSet) {
		s.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node.Labels[corev1.LabelHostname]}
	})
	givenSet(t, set)
	before := podsOf(t, set)
	end := world.Always(t, set.Namespace, story.AtLeastReady(2))
	rollout := forecasts.Edit(t, world, set, requests(tooMuch.String()))
	story.WaitsFor(t, world, set, "ResizeDeferred", "web-")
	rollout.ComesTrue(t)
	rolls(t, set, requests("30m"))
	end()
	assert.Equal(t, story.Identities(before), story.Identities(podsOf(t, set)))
	assert.EqualValues(t, 2, set.Status.UpdatedReplicas)
}

// The same with a deadline: the pod that does not get its resources is recreated, and the new one waits for room on a node.
func TestADeferredResizePastItsDeadlineGetsANewPod(t *testing.T) {
	t.Parallel()
	nodes := &corev1.NodeList{}
	require.NoError(t, world.Client.List(t.Context(), nodes))
	node := nodes.Items[0]
	tooMuch := resource.NewMilliQuantity(node.Status.Allocatable.Cpu().MilliValue()*55/100, resource.DecimalSI)
	set := newSet(world.Namespace(t), 2, requests("20m"), func(s *v1beta1.CloneSet) {
		s.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node.Labels[corev1.LabelHostname]}
		s.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy = &workload.InPlaceUpdateStrategy{ResizeDeadlineSeconds: new(int32(2))}
	})
	givenSet(t, set)
	before := story.Identities(podsOf(t, set))
	end := world.Always(t, set.Namespace, story.AtLeastReady(1))
	rollout := forecasts.Edit(t, world, set, requests(tooMuch.String()))
	story.Eventually(t, "a new pod that waits for a node", func(context.Context) error {
		waiting := slices.ContainsFunc(podsOf(t, set), func(o corev1.Pod) bool { return o.Spec.NodeName == "" })
		return story.Want(waiting, "every pod has a node")
	})
	rollout.ComesTrue(t)
	rolls(t, set, requests("30m"))
	end()
	kept := slices.DeleteFunc(story.Identities(podsOf(t, set)), func(i story.Identity) bool { return !slices.Contains(before, i) })
	assert.Len(t, kept, 1, "the pod that has got its resources stays")
}

// An edit of image and resources is complete when both are.
func TestImageAndResourcesChangeTogether(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 1, requests("20m"), limits("200m", "64Mi"))
	givenSet(t, set)
	before := story.Identities(podsOf(t, set))
	rolls(t, set, func(s *v1beta1.CloneSet) {
		image("v2")(s)
		limits("300m", "96Mi")(s)
	})
	_, cpu, memory, _ := running(t, set)
	assert.Equal(t, "300m", cpu)
	assert.Equal(t, "96Mi", memory)
	assert.Equal(t, []string{app + "v2"}, story.Images(podsOf(t, set)))
	assert.Equal(t, before, story.Identities(podsOf(t, set)))
}
