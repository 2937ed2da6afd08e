package admission

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

type (
	set      = v1beta1.StatefulSet
	strategy = v1beta1.RollingUpdateStatefulSetStrategy
)

// valid is a StatefulSet without fault that uses the defaults of all feature gates, changed.
func valid(changes ...func(*set)) *set {
	s := &set{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"}}
	s.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	s.Spec.Template = gen.Template(gen.Label("app", "web"), gen.Image("main", "nginx:1"))
	s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{gen.Claim("data", "2Gi"), gen.Claim("log", "2Gi")}
	Default(s, FeatureGates{AutoDeletePVC: true})
	for _, change := range changes {
		change(s)
	}
	return s
}

func parallel(s *set) { s.Spec.PodManagementPolicy = appsv1.ParallelPodManagement }

func rolling(change func(*strategy)) func(*set) {
	return func(s *set) { change(s.Spec.UpdateStrategy.RollingUpdate) }
}

// inPlace gives the set a policy, and the readiness gate that the policy needs.
func inPlace(policy v1beta1.PodUpdatePolicy) func(*set) {
	return func(s *set) {
		s.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = policy
		s.Spec.Template.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "other"}, {ConditionType: "InPlaceUpdateReady"}}
	}
}

func all(changes ...func(*set)) func(*set) {
	return func(s *set) {
		for _, change := range changes {
			change(s)
		}
	}
}

func number(n int32) *intstr.IntOrString    { return new(intstr.FromInt32(n)) }
func text(value string) *intstr.IntOrString { return new(intstr.FromString(value)) }

func texts(errs field.ErrorList) []string {
	var list []string
	for _, err := range errs {
		list = append(list, err.Error())
	}
	return list
}
