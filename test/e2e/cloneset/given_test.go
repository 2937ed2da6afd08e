package cloneset

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/forecasts"
	"github.com/flotilla-project/flotilla/test/story"
)

const app = "flotilla/demo-app:"

// newSet returns a CloneSet "web" of the demo application at v1, updated in place, one pod at a time.
func newSet(namespace string, replicas int32, change ...func(*v1beta1.CloneSet)) *v1beta1.CloneSet {
	set := &v1beta1.CloneSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace},
		Spec: v1beta1.CloneSetSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
				Spec: corev1.PodSpec{
					Containers:                    []corev1.Container{{Name: "main", Image: app + "v1"}},
					TerminationGracePeriodSeconds: new(int64(5)),
				},
			},
			UpdateStrategy: v1beta1.CloneSetUpdateStrategy{
				Type: v1beta1.RollingUpdate,
				RollingUpdate: &v1beta1.RollingUpdateCloneSetStrategy{
					PodUpdatePolicy: v1beta1.InPlaceIfPossible,
					MaxUnavailable:  new(intstr.FromInt32(1)),
				},
			},
		},
	}
	for _, c := range change {
		c(set)
	}
	return set
}

func recreating(set *v1beta1.CloneSet) {
	set.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = v1beta1.ReCreate
}

// givenSet creates the set and waits until it settles.
func givenSet(t *testing.T, set *v1beta1.CloneSet) {
	t.Helper()
	require.NoError(t, world.Client.Create(t.Context(), set))
	settles(t, set)
}

// edit changes the current set.
func edit(t *testing.T, set *v1beta1.CloneSet, change func(*v1beta1.CloneSet)) {
	t.Helper()
	story.Edit(t, world, set, change)
}

// rolls changes the set at rest, and waits until it settles again, as its forecast says.
func rolls(t *testing.T, set *v1beta1.CloneSet, change func(*v1beta1.CloneSet)) {
	t.Helper()
	rollout := forecasts.Edit(t, world, set, change)
	settles(t, set)
	rollout.ComesTrue(t)
}

func image(version string) func(*v1beta1.CloneSet) {
	return func(set *v1beta1.CloneSet) { set.Spec.Template.Spec.Containers[0].Image = app + version }
}

// settles waits until the set's status is for its current spec and all its pods meet it.
func settles(t *testing.T, set *v1beta1.CloneSet) {
	t.Helper()
	story.Settles(t, world, set, func(set *v1beta1.CloneSet) error {
		s, pods := set.Status, story.Active(podsOf(t, set))
		return story.Want(s.AvailableReplicas == *set.Spec.Replicas && len(pods) == int(*set.Spec.Replicas), "status is %+v with %d pods", s, len(pods))
	})
}

// podsOf returns the pods of the set, ordered by name.
func podsOf(t *testing.T, set *v1beta1.CloneSet) []corev1.Pod {
	t.Helper()
	return world.Pods(t, set.Namespace)
}
