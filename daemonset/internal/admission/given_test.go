package admission

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

type (
	set      = v1beta1.DaemonSet
	strategy = v1beta1.RollingUpdateDaemonSet
)

// valid is a DaemonSet without fault, changed.
func valid(changes ...func(*set)) *set {
	s := &set{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"}}
	s.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	s.Spec.Template = gen.Template(gen.Label("app", "web"), gen.Image("main", "nginx:1"))
	Default(s)
	for _, change := range changes {
		change(s)
	}
	return s
}

func rolling(change func(*strategy)) func(*set) {
	return func(s *set) { change(s.Spec.UpdateStrategy.RollingUpdate) }
}

// limits sets both limits of the update; nil leaves one absent.
func limits(unavailable, surge *intstr.IntOrString) func(*set) {
	return rolling(func(r *strategy) { r.MaxUnavailable, r.MaxSurge = unavailable, surge })
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
