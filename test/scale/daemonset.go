package scale

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	daemonset "github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

// onNodes lets the template match all nodes, or none.
func onNodes(template *corev1.PodTemplateSpec, all bool) {
	template.Spec.NodeSelector = nil
	if !all {
		template.Spec.NodeSelector = map[string]string{"example.io/node": "none"}
	}
}

func builtInDaemonSet() workload {
	set := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DaemonSetSpec{
			Selector: selector(),
			Template: template(),
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{
				Type:          appsv1.RollingUpdateDaemonSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: new(intstr.FromString("10%"))},
			},
		},
	}
	pods := int32(0)
	onNodes(&set.Spec.Template, false)
	return workload{
		Object:      set,
		kind:        "built-in DaemonSet",
		controller:  "daemon-set-controller",
		countsReady: "status.numberReady",
		scale: func(n int32) {
			pods = n
			onNodes(&set.Spec.Template, n > 0)
		},
		template:  func() *corev1.PodTemplateSpec { return &set.Spec.Template },
		recreates: true,
		ready: func() bool {
			s := set.Status
			return s.ObservedGeneration == set.Generation && s.DesiredNumberScheduled == pods && s.NumberAvailable == pods &&
				s.UpdatedNumberScheduled == pods && s.NumberMisscheduled == 0
		},
	}
}

func daemonSet() workload {
	set := &daemonset.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: daemonset.DaemonSetSpec{
			Selector: selector(),
			Template: template(),
			UpdateStrategy: daemonset.DaemonSetUpdateStrategy{RollingUpdate: &daemonset.RollingUpdateDaemonSet{
				RollingUpdateType: daemonset.InPlaceRollingUpdateType, MaxUnavailable: new(intstr.FromString("10%")),
			}},
		},
	}
	pods := int32(0)
	onNodes(&set.Spec.Template, false)
	return workload{
		Object:      set,
		kind:        "DaemonSet",
		countsReady: "status.numberReady",
		scale: func(n int32) {
			pods = n
			onNodes(&set.Spec.Template, n > 0)
		},
		template:  func() *corev1.PodTemplateSpec { return &set.Spec.Template },
		inPlace:   true,
		recreates: true,
		ready: func() bool {
			s := set.Status
			return s.ObservedGeneration == set.Generation && s.DesiredNumberScheduled == pods && s.NumberAvailable == pods &&
				s.UpdatedNumberScheduled == pods && s.NumberMisscheduled == 0
		},
	}
}
