package statefulset

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/story"
)

// Four pods without ordinal 1; then one is replaced by another ordinal; then one is deleted.
func TestReservedOrdinalsDoNotRun(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]func(*v1beta1.StatefulSet){"Parallel": func(*v1beta1.StatefulSet) {}, "OrderedReady": ordered} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := newSet(world.Namespace(t), 4, policy, reserve(1))
			givenSet(t, set)
			first := podsOf(t, set)
			assert.Equal(t, []string{"web-0", "web-2", "web-3", "web-4"}, names(first))

			rolls(t, set, reserve(1, 3))
			moved := story.Active(podsOf(t, set))
			assert.Equal(t, []string{"web-0", "web-2", "web-4", "web-5"}, names(moved))

			rolls(t, set, changes(reserve(1, "3-4"), replicas(3)))
			left := story.Active(podsOf(t, set))
			assert.Equal(t, []string{"web-0", "web-2", "web-5"}, names(left))
			assert.Equal(t, story.Identities(first[:2]), story.Identities(left[:2]), "the others are not touched")
		})
	}
}

// If one edit reserves an ordinal and lowers replicas, that pod is deleted and none is created.
func TestReservingWithFewerReplicasRemovesThatPod(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 4, reserve(1))
	givenSet(t, set)
	seen := map[string]bool{}
	end := world.Always(t, set.Namespace, func(pods story.Pods) error {
		for _, o := range pods {
			seen[o.Name] = true
		}
		return nil
	})
	rolls(t, set, changes(reserve(1, 3), replicas(3)))
	end()
	assert.Equal(t, []string{"web-0", "web-2", "web-4"}, names(story.Active(podsOf(t, set))))
	assert.NotContains(t, seen, "web-5")
}

func TestOrdinalsMayStartAnywhere(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 2)
	givenSet(t, set)
	rolls(t, set, changes(replicas(3), func(s *v1beta1.StatefulSet) {
		s.Spec.Ordinals = &v1beta1.StatefulSetOrdinals{Start: 2}
	}))
	assert.Equal(t, []string{"web-2", "web-3", "web-4"}, names(story.Active(podsOf(t, set))))
	assert.Equal(t, "4", podsOf(t, set)[2].Labels[appsv1.PodIndexLabel])
}

// Creation stops while scaleStrategy.maxUnavailable new pods are unavailable.
func TestCreationIsHeldBack(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 6, func(s *v1beta1.StatefulSet) {
		s.Spec.ScaleStrategy = &v1beta1.StatefulSetScaleStrategy{MaxUnavailable: new(intstr.FromInt32(2))}
	})
	most := 0
	end := world.Always(t, set.Namespace, func(pods story.Pods) error {
		notReady := len(pods) - pods.Ready()
		most = max(most, notReady)
		return story.Want(notReady <= 2, "%d pods are not ready", notReady)
	})
	givenSet(t, set)
	end()
	assert.Equal(t, 2, most)
}

func TestScaleSubresource(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 1)
	givenSet(t, set)
	for _, n := range []string{"4", "2"} {
		out, err := world.Kubectl(t, "", "-n", set.Namespace, "scale", "asts/web", "--replicas="+n)
		require.NoError(t, err, out)
		settles(t, set)
		assert.Len(t, story.Active(podsOf(t, set)), int(*set.Spec.Replicas))
	}
	assert.Equal(t, "app=web", set.Status.LabelSelector)
}

func TestKubectlWaitReadsConditions(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 2)
	require.NoError(t, world.Client.Create(t.Context(), set))
	out, err := world.Kubectl(t, "", "-n", set.Namespace, "wait", "asts/web", "--for=condition=Ready", "--timeout=90s")
	require.NoError(t, err, out)
}

// Only a pod with the same name waits for a pod that stays in Terminating.
func TestAHangingPodStopsNobodyElse(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 4, recreating)
	givenSet(t, set)
	held := &podsOf(t, set)[1]
	story.Edit(t, world, held, func(o *corev1.Pod) { o.Finalizers = append(o.Finalizers, "example.io/hold") })
	require.NoError(t, world.Client.Delete(t.Context(), held))
	story.Edit(t, world, set, changes(replicas(6), maxUnavailable(2), image("v2")))
	story.Eventually(t, "all other pods at the new image", func(context.Context) error {
		updated := 0
		for _, o := range story.Active(podsOf(t, set)) {
			if o.Spec.Containers[0].Image == app+"v2" && story.IsReady(&o) {
				updated++
			}
		}
		return story.Want(updated == 5, "%d are", updated)
	})
	story.Edit(t, world, held, func(o *corev1.Pod) { o.Finalizers = nil })
	settles(t, set)
	assert.EqualValues(t, 6, set.Status.UpdatedReplicas)
}
