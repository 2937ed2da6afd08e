package admission

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

// Warnings tell the user about what is accepted and does not do what it seems to.
func Warnings(set *v1beta1.DaemonSet, featureGates FeatureGates) []string {
	spec, rolling := &set.Spec, set.Spec.UpdateStrategy.RollingUpdate
	if rolling == nil || spec.UpdateStrategy.Type == v1beta1.OnDeleteStrategyType {
		rolling = &v1beta1.RollingUpdateDaemonSet{}
	}
	partitioned := !isZero(rolling.Partition)
	hooks := spec.Lifecycle
	var warnings []string
	for _, w := range []struct {
		text string
		is   bool
	}{
		{
			"no effect: spec.scaleStrategy.partitionedScaling without spec.updateStrategy.rollingUpdate.partition",
			spec.ScaleStrategy != nil && spec.ScaleStrategy.PartitionedScaling && !partitioned,
		},
		{
			"no effect: spec.updateStrategy.rollingUpdate.unselectedNodePolicy without selector and partition",
			rolling.UnselectedNodePolicy == v1beta1.RevertUnselectedNodes && rolling.Selector == nil && !partitioned,
		},
		{"no effect: spec.lifecycle.preNormal, which DaemonSet does not have", hooks != nil && hooks.PreNormal != nil},
		{
			"no effect: spec.lifecycle.preDelete has neither labelsHandler nor finalizersHandler",
			hooks != nil && hooks.PreDelete != nil && len(hooks.PreDelete.LabelsHandler)+len(hooks.PreDelete.FinalizersHandler) == 0,
		},
		{
			"spec.updateStrategy.rollingUpdate.maxSurge: the template takes ports of the host, which a second pod on the node would wait for",
			!isZero(rolling.MaxSurge) && usesHostPorts(&spec.Template.Spec),
		},
		{
			"no effect: the settings of image pre-download, because feature gate " + string(features.PreDownloadImageForDaemonSetUpdate) +
				" of the DaemonSet operator is off",
			asksPreDownload(set) && !featureGates.PreDownload,
		},
	} {
		if w.is {
			warnings = append(warnings, w.text)
		}
	}
	return warnings
}

func asksPreDownload(set *v1beta1.DaemonSet) bool {
	return slices.ContainsFunc([]string{
		contract.ImagePreDownloadParallelismAnnotation, contract.ImagePreDownloadTimeoutSecondsAnnotation,
		contract.ImagePreDownloadMinUpdatedReadyPodsAnnotation,
	}, func(key string) bool { _, ok := set.Annotations[key]; return ok })
}

func usesHostPorts(pod *corev1.PodSpec) bool {
	return slices.ContainsFunc(pod.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.HostPort != 0 || pod.HostNetwork })
	})
}
