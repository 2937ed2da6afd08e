package plan

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/simulate"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

func rolling(change func(*v1beta1.RollingUpdateStatefulSetStrategy)) setOption {
	return func(s *v1beta1.StatefulSet) {
		if s.Spec.UpdateStrategy.RollingUpdate != nil {
			change(s.Spec.UpdateStrategy.RollingUpdate)
		}
	}
}

func image(name string) setOption {
	return func(s *v1beta1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Image = name }
}

func replicas(n int32) setOption {
	return func(s *v1beta1.StatefulSet) { s.Spec.Replicas = &n }
}

func inOrder() setOption {
	return func(s *v1beta1.StatefulSet) { s.Spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement }
}

func maxUnavailable(v string) setOption {
	return rolling(func(r *v1beta1.RollingUpdateStatefulSetStrategy) { r.MaxUnavailable = amount(v) })
}

func partition(n int32) setOption {
	return rolling(func(r *v1beta1.RollingUpdateStatefulSetStrategy) { r.Partition = &n })
}

func policy(v v1beta1.PodUpdatePolicy) setOption {
	return rolling(func(r *v1beta1.RollingUpdateStatefulSetStrategy) { r.PodUpdatePolicy = v })
}

func paused(is bool) setOption {
	return rolling(func(r *v1beta1.RollingUpdateStatefulSetStrategy) { r.Paused = is })
}

func minReady(seconds int32) setOption {
	return rolling(func(r *v1beta1.RollingUpdateStatefulSetStrategy) { r.MinReadySeconds = &seconds })
}

func grace(seconds int32) setOption {
	return rolling(func(r *v1beta1.RollingUpdateStatefulSetStrategy) {
		r.InPlaceUpdateStrategy = &workload.InPlaceUpdateStrategy{GracePeriodSeconds: seconds}
	})
}

func unorderedBy(p *workload.UpdatePriorityStrategy) setOption {
	return rolling(func(r *v1beta1.RollingUpdateStatefulSetStrategy) {
		r.UnorderedUpdate = &v1beta1.UnorderedUpdateStrategy{PriorityStrategy: p}
	})
}

func scaleUnavailable(v string) setOption {
	return func(s *v1beta1.StatefulSet) {
		s.Spec.ScaleStrategy = &v1beta1.StatefulSetScaleStrategy{MaxUnavailable: amount(v)}
	}
}

func onDeleteOnly() setOption {
	return func(s *v1beta1.StatefulSet) {
		s.Spec.UpdateStrategy = v1beta1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
	}
}

// reserved are numbers and ranges.
func reserved(entries ...any) setOption {
	return func(s *v1beta1.StatefulSet) {
		s.Spec.ReserveOrdinals = nil
		for _, e := range entries {
			switch e := e.(type) {
			case int:
				s.Spec.ReserveOrdinals = append(s.Spec.ReserveOrdinals, intstr.FromInt32(int32(e)))
			case string:
				s.Spec.ReserveOrdinals = append(s.Spec.ReserveOrdinals, intstr.FromString(e))
			}
		}
	}
}

func startAt(n int32) setOption {
	return func(s *v1beta1.StatefulSet) { s.Spec.Ordinals = &v1beta1.StatefulSetOrdinals{Start: n} }
}

// claimed adds claim templates of 1Gi, but for names that have one.
func claimed(names ...string) setOption {
	return func(s *v1beta1.StatefulSet) {
		for _, name := range names {
			if !slices.ContainsFunc(s.Spec.VolumeClaimTemplates, func(c corev1.PersistentVolumeClaim) bool { return c.Name == name }) {
				s.Spec.VolumeClaimTemplates = append(s.Spec.VolumeClaimTemplates, gen.Claim(name, "1Gi"))
			}
		}
	}
}

func retention(whenDeleted, whenScaled appsv1.PersistentVolumeClaimRetentionPolicyType) setOption {
	return func(s *v1beta1.StatefulSet) {
		s.Spec.PersistentVolumeClaimRetentionPolicy = &v1beta1.StatefulSetPersistentVolumeClaimRetentionPolicy{
			WhenDeleted: whenDeleted, WhenScaled: whenScaled,
		}
	}
}

// hooked lets label hook=on hold pods before their deletion and before their update in place.
func hooked() setOption {
	return func(s *v1beta1.StatefulSet) {
		hook := simulate.Hook()
		s.Spec.Lifecycle = &workload.Lifecycle{PreDelete: hook, InPlaceUpdate: hook}
	}
}

// hookTaken puts label hook=on into the template, so that new pods have taken the hooks of hooked.
func hookTaken() setOption {
	return func(s *v1beta1.StatefulSet) { s.Spec.Template.Labels[simulate.HookLabel] = simulate.HookTaken }
}

// preNormalHook lets label hook=on admit new pods to service.
func preNormalHook() setOption {
	return func(s *v1beta1.StatefulSet) {
		s.Spec.Lifecycle = &workload.Lifecycle{PreNormal: simulate.Hook()}
	}
}

func history(limit int32) setOption {
	return func(s *v1beta1.StatefulSet) { s.Spec.RevisionHistoryLimit = &limit }
}

// heldBefore puts a pod into a state in which a hook of hooked holds it.
func heldBefore(state string) gen.PodOption {
	return gen.Change(func(o *corev1.Pod) {
		o.Labels[contract.LifecycleStateLabel], o.Labels[simulate.HookLabel] = state, simulate.HookTaken
	})
}

// growing gives the claim templates a size and lets claims follow it, in a class whose volumes may grow.
func growing(size string) setOption {
	return func(s *v1beta1.StatefulSet) {
		s.Spec.VolumeClaimUpdateStrategy.Type = v1beta1.OnPodRollingUpdate
		for i := range s.Spec.VolumeClaimTemplates {
			spec := &s.Spec.VolumeClaimTemplates[i].Spec
			spec.StorageClassName = new("big")
			spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(size)
		}
	}
}
