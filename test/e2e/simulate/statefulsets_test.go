package simulate

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/core/contract"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// database is a StatefulSet of four pods that are updated in order.
func database(namespace string) *v1beta1.StatefulSet {
	return &v1beta1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "database", Namespace: namespace},
		Spec: v1beta1.StatefulSetSpec{
			Replicas:    new(int32(4)),
			ServiceName: "database",
			Selector:    &metav1.LabelSelector{MatchLabels: map[string]string{"app": "database"}},
			Template:    web(namespace).Spec.Template,
			UpdateStrategy: v1beta1.StatefulSetUpdateStrategy{
				Type: appsv1.RollingUpdateStatefulSetStrategyType,
				RollingUpdate: &v1beta1.RollingUpdateStatefulSetStrategy{
					PodUpdatePolicy: v1beta1.InPlaceIfPossible, MaxUnavailable: new(intstr.FromInt32(1)),
				},
			},
		},
	}
}

func TestEditsOfStatefulSetsAreForetold(t *testing.T) {
	newImage := func(set *v1beta1.StatefulSet) { set.Spec.Template.Spec.Containers[0].Image = app + "v2" }
	for name, c := range map[string]rollout[*v1beta1.StatefulSet]{
		"an image": {edit: newImage},
		"a port": {edit: func(set *v1beta1.StatefulSet) {
			set.Spec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 81}}
		}},
		"a partition": {edit: func(set *v1beta1.StatefulSet) {
			newImage(set)
			set.Spec.UpdateStrategy.RollingUpdate.Partition = new(int32(2))
		}},
		"a scale, one by one": {edit: func(set *v1beta1.StatefulSet) { set.Spec.Replicas = new(int32(6)) }},
		"two at once": {before: func(set *v1beta1.StatefulSet) {
			set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
			set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt32(2))
		}, edit: newImage},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := database(world.Namespace(t))
			set.Spec.Template.Labels = set.Spec.Selector.MatchLabels
			set.Spec.Template.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: contract.InPlaceUpdateReady}}
			c.play(t, set)
		})
	}
}
