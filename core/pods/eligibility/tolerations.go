package eligibility

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// WithDefaults are the tolerations together with those that every pod of a DaemonSet has, each once. One that the list has
// for a time (tolerationSeconds) holds without end, as in the built-in kind: the pods of a node that is not ready stay.
// The list given is not changed.
func WithDefaults(tolerations []corev1.Toleration, hostNetwork bool) []corev1.Toleration {
	all := slices.Clone(tolerations)
	for _, t := range defaults(hostNetwork) {
		missing := true
		for i := range all {
			if all[i].MatchToleration(&t) {
				all[i], missing = t, false
			}
		}
		if missing {
			all = append(all, t)
		}
	}
	return all
}

// defaults are the tolerations that the built-in DaemonSet adds: its pods run on nodes that are not ready, unreachable,
// short of something or cordoned.
func defaults(hostNetwork bool) []corev1.Toleration {
	exists := func(key string, effect corev1.TaintEffect) corev1.Toleration {
		return corev1.Toleration{
			Key:      key,
			Operator: corev1.TolerationOpExists,
			Effect:   effect,
		}
	}
	all := []corev1.Toleration{
		exists(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute),
		exists(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute),
		exists(corev1.TaintNodeDiskPressure, corev1.TaintEffectNoSchedule),
		exists(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule),
		exists(corev1.TaintNodePIDPressure, corev1.TaintEffectNoSchedule),
		exists(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule),
	}
	if hostNetwork {
		all = append(all, exists(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule))
	}
	return all
}
