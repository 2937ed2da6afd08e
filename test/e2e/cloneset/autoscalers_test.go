package cloneset

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/story"
)

// A vertical autoscaler finds the pods by the scale subresource, resizes one in place and evicts another. The set does
// not change the first, replaces the second, and can be updated afterwards.
func TestAVerticalAutoscalerIsLivedWith(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 2, requests("20m"), limits("200m", "64Mi"))
	givenSet(t, set)
	pods := found(t, set)
	require.Len(t, pods, 2)
	resized, evicted := pods[0], pods[1]
	ids := story.ContainerIDs([]corev1.Pod{resized})

	out, err := world.Kubectl(t, "", "-n", set.Namespace, "patch", "pod", resized.Name, "--subresource=resize", "-p",
		`{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"30m"},"limits":{"cpu":"300m"}}}]}}`)
	require.NoError(t, err, out)
	story.Reaches(t, world, &resized, "the new limit", func(o *corev1.Pod) error {
		cpu := o.Status.ContainerStatuses[0].Resources.Limits.Cpu().String()
		return story.Want(cpu == "300m", "it runs with %s", cpu)
	})
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: evicted.Name, Namespace: set.Namespace}}
	require.NoError(t, world.Client.SubResource("eviction").Create(t.Context(), &evicted, eviction))
	story.Eventually(t, "a replacement", func(context.Context) error {
		for _, o := range story.Active(podsOf(t, set)) {
			if o.Name != resized.Name && o.UID != evicted.UID && story.IsReady(&o) {
				return nil
			}
		}
		return story.Want(false, "there is none")
	})
	settles(t, set)

	rolls(t, set, image("v2"))
	story.Reaches(t, world, &resized, "image and limit", func(o *corev1.Pod) error {
		c := o.Spec.Containers[0]
		return story.Want(c.Image == app+"v2" && c.Resources.Limits.Cpu().String() == "300m", "it is %+v", c)
	})
	assert.NotEqual(t, ids, story.ContainerIDs([]corev1.Pod{resized}))
	assert.EqualValues(t, 2, set.Status.UpdatedReadyReplicas)
}

// An event-driven autoscaler scales the set to zero and back through the scale subresource.
func TestAnAutoscalerScalesToZeroAndBack(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 2)
	givenSet(t, set)
	for _, replicas := range []int32{0, 1, 0, 2} {
		scale := &autoscalingv1.Scale{}
		require.NoError(t, world.Client.SubResource("scale").Get(t.Context(), set, scale))
		scale.Spec.Replicas = replicas
		require.NoError(t, world.Client.SubResource("scale").Update(t.Context(), set, client.WithSubResourceBody(scale)))
		settles(t, set)
		require.NoError(t, world.Client.SubResource("scale").Get(t.Context(), set, scale))
		assert.Equal(t, replicas, scale.Status.Replicas)
		assert.Equal(t, "app=web", scale.Status.Selector)
	}
}

// found returns the pods that the selector of the scale subresource selects.
func found(t *testing.T, set *v1beta1.CloneSet) []corev1.Pod {
	t.Helper()
	scale := &autoscalingv1.Scale{}
	require.NoError(t, world.Client.SubResource("scale").Get(t.Context(), set, scale))
	selector, err := labels.Parse(scale.Status.Selector)
	require.NoError(t, err)
	list := &corev1.PodList{}
	require.NoError(t, world.Client.List(t.Context(), list, client.InNamespace(set.Namespace), client.MatchingLabelsSelector{Selector: selector}))
	return list.Items
}
