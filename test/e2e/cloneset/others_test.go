package cloneset

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/story"
)

// A HorizontalPodAutoscaler scales the set to its minimum through the scale subresource. Without metrics it makes no
// other change.
func TestAnAutoscalerScalesTheSet(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 1)
	givenSet(t, set)
	out, err := world.Kubectl(t, "", "-n", set.Namespace, "autoscale", "clone/web", "--min=2", "--max=4", "--cpu-percent=50")
	require.NoError(t, err, out)
	scaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: set.Namespace}}
	story.Reaches(t, world, scaler, "a look for metrics", func(s *autoscalingv2.HorizontalPodAutoscaler) error {
		c := story.Condition(s, string(autoscalingv2.ScalingActive))
		return story.Want(c.Status == metav1.ConditionFalse && s.Status.CurrentReplicas == 2, "status is %+v", s.Status)
	})
	assert.Equal(t, metav1.ConditionTrue, story.Condition(scaler, string(autoscalingv2.AbleToScale)).Status, "%+v", scaler.Status)
	settles(t, set)
	assert.EqualValues(t, 2, *set.Spec.Replicas)
}

func TestStrayPodsAreAdopted(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 2, func(s *v1beta1.CloneSet) {
		s.Spec.UpdateStrategy = v1beta1.CloneSetUpdateStrategy{Type: v1beta1.OnDelete}
	})
	stray := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "stray", Namespace: set.Namespace, Labels: set.Spec.Template.Labels},
		Spec:       *set.Spec.Template.Spec.DeepCopy(),
	}
	require.NoError(t, world.Client.Create(t.Context(), stray))
	require.NoError(t, world.Client.Create(t.Context(), set))
	story.Reaches(t, world, stray, "its owner", func(o *corev1.Pod) error {
		return story.Want(metav1.IsControlledBy(o, set), "owners are %v", o.OwnerReferences)
	})
	story.Eventually(t, "one pod beside it", func(context.Context) error {
		pods := story.Active(podsOf(t, set))
		return story.Want(len(pods) == 2, "there are %d pods", len(pods))
	})
}

// The set keeps as many old revisions as its history limit.
func TestHistoryIsCut(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 1, func(s *v1beta1.CloneSet) { s.Spec.RevisionHistoryLimit = new(int32(1)) })
	givenSet(t, set)
	for i := range 3 {
		rolls(t, set, func(s *v1beta1.CloneSet) {
			s.Spec.Template.Annotations = map[string]string{"example.io/edit": fmt.Sprint(i)}
		})
	}
	story.Eventually(t, "the cut", func(ctx context.Context) error {
		list := &appsv1.ControllerRevisionList{}
		if err := world.Client.List(ctx, list, client.InNamespace(set.Namespace)); err != nil {
			return err
		}
		return story.Want(len(list.Items) == 2, "there are %d revisions", len(list.Items))
	})
}

// Pods with spread constraints are still spread over the nodes after scaling in.
func TestScaleInKeepsPodsSpread(t *testing.T) {
	t.Parallel()
	nodes := int32(len(world.Cluster.Nodes()))
	set := newSet(world.Namespace(t), 2*nodes, func(s *v1beta1.CloneSet) {
		s.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			TopologyKey: corev1.LabelHostname, MaxSkew: 1, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: s.Spec.Selector,
		}}
	})
	givenSet(t, set)
	rolls(t, set, func(s *v1beta1.CloneSet) { s.Spec.Replicas = &nodes })
	on := map[string]bool{}
	for _, o := range story.Active(podsOf(t, set)) {
		on[o.Spec.NodeName] = true
	}
	assert.Len(t, on, int(nodes))
}
