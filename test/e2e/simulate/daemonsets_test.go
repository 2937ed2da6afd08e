package simulate

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

// agent is a DaemonSet, one pod of which may be unavailable.
func agent(namespace string) *v1beta1.DaemonSet {
	return &v1beta1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "agent", Namespace: namespace},
		Spec: v1beta1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}},
			Template: web(namespace).Spec.Template,
			UpdateStrategy: v1beta1.DaemonSetUpdateStrategy{
				Type:          v1beta1.RollingUpdateStrategyType,
				RollingUpdate: &v1beta1.RollingUpdateDaemonSet{MaxUnavailable: new(intstr.FromInt32(1))},
			},
		},
	}
}

func TestEditsOfDaemonSetsAreForetold(t *testing.T) {
	newImage := func(set *v1beta1.DaemonSet) { set.Spec.Template.Spec.Containers[0].Image = app + "v2" }
	rolling := func(set *v1beta1.DaemonSet) *v1beta1.RollingUpdateDaemonSet {
		return set.Spec.UpdateStrategy.RollingUpdate
	}
	for name, c := range map[string]rollout[*v1beta1.DaemonSet]{
		"an image": {edit: newImage},
		"an image, in place": {before: func(set *v1beta1.DaemonSet) {
			rolling(set).RollingUpdateType = v1beta1.InPlaceRollingUpdateType
		}, edit: newImage},
		"a partition": {edit: func(set *v1beta1.DaemonSet) {
			newImage(set)
			rolling(set).Partition = new(intstr.FromInt32(1))
		}},
		"a surge": {before: func(set *v1beta1.DaemonSet) {
			rolling(set).MaxSurge, rolling(set).MaxUnavailable = new(intstr.FromInt32(1)), new(intstr.FromInt32(0))
		}, edit: func(set *v1beta1.DaemonSet) {
			set.Spec.Template.Spec.Containers[0].Env = append(set.Spec.Template.Spec.Containers[0].Env, corev1.EnvVar{Name: "C", Value: "3"})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := agent(world.Namespace(t))
			set.Spec.Template.Labels = set.Spec.Selector.MatchLabels
			c.play(t, set)
		})
	}
}
