package cloneset

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/forecasts"
	"github.com/flotilla-project/flotilla/test/story"
)

func TestScaleSubresource(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 1)
	givenSet(t, set)
	for _, replicas := range []string{"4", "2"} {
		out, err := world.Kubectl(t, "", "-n", set.Namespace, "scale", "clone/web", "--replicas="+replicas)
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
	out, err := world.Kubectl(t, "", "-n", set.Namespace, "wait", "clone/web", "--for=condition=Ready", "--timeout=90s")
	require.NoError(t, err, out)
}

func TestNamedPodsAreReplaced(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 3)
	givenSet(t, set)
	doomed := podsOf(t, set)[0].Name
	rollout := forecasts.Edit(t, world, set, func(s *v1beta1.CloneSet) { s.Spec.ScaleStrategy.PodsToDelete = []string{doomed} })
	story.Eventually(t, "replacement of the named pod", func(ctx context.Context) error {
		if err := world.Client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		return story.Want(len(set.Spec.ScaleStrategy.PodsToDelete) == 0, "podsToDelete still names %v", set.Spec.ScaleStrategy.PodsToDelete)
	})
	settles(t, set)
	rollout.ComesTrue(t)
	for _, o := range story.Active(podsOf(t, set)) {
		assert.NotEqual(t, doomed, o.Name)
	}
}

func TestNamedPodsGoWithFewerReplicas(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 3)
	givenSet(t, set)
	pods := podsOf(t, set)
	rolls(t, set, func(s *v1beta1.CloneSet) {
		s.Spec.Replicas = new(int32(2))
		s.Spec.ScaleStrategy.PodsToDelete = []string{pods[1].Name}
	})
	left := story.Identities(story.Active(podsOf(t, set)))
	assert.Equal(t, story.Identities([]corev1.Pod{pods[0], pods[2]}), left)
}

func TestEachPodHasItsClaim(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 2, func(s *v1beta1.CloneSet) {
		s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
			ObjectMeta: metav1.ObjectMeta{Name: "data"},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}},
			},
		}}
		s.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	})
	givenSet(t, set)
	claims := func() map[string]bool {
		list := &corev1.PersistentVolumeClaimList{}
		require.NoError(t, world.Client.List(t.Context(), list, client.InNamespace(set.Namespace)))
		names := map[string]bool{}
		for i := range list.Items {
			if list.Items[i].DeletionTimestamp == nil {
				names[list.Items[i].Name] = true
			}
		}
		return names
	}
	for _, o := range podsOf(t, set) {
		assert.Contains(t, claims(), "data-"+o.Name)
	}
	rolls(t, set, func(s *v1beta1.CloneSet) { s.Spec.Replicas = new(int32(1)) })
	story.Eventually(t, "deletion of the claim", func(context.Context) error {
		return story.Want(len(claims()) == 1, "claims are %v", claims())
	})
}
