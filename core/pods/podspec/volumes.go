package podspec

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// UndeclaredVolumes returns the names of the volumes that containers mount and the spec does not declare, each once.
// Pods have them from claim templates or from a webhook.
func UndeclaredVolumes(spec *corev1.PodSpec) []string {
	var names []string
	add := func(name string) {
		declared := slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
		if !declared && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			for k := range list[i].VolumeMounts {
				add(list[i].VolumeMounts[k].Name)
			}
			for k := range list[i].VolumeDevices {
				add(list[i].VolumeDevices[k].Name)
			}
		}
	}
	return names
}
