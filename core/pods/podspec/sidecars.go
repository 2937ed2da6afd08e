package podspec

import corev1 "k8s.io/api/core/v1"

// IsSidecar reports whether an init container is a native sidecar: it runs as long as the pod does, and the kubelet
// replaces it when its image changes. Other init containers run once, before the pod's containers.
func IsSidecar(init *corev1.Container) bool {
	return init.RestartPolicy != nil && *init.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// LongRunning returns the containers that run as long as the pod does, in the order in which they are started: native
// sidecars, and then containers.
func LongRunning(spec *corev1.PodSpec) []*corev1.Container {
	all := make([]*corev1.Container, 0, len(spec.InitContainers)+len(spec.Containers))
	for i := range spec.InitContainers {
		if IsSidecar(&spec.InitContainers[i]) {
			all = append(all, &spec.InitContainers[i])
		}
	}
	for i := range spec.Containers {
		all = append(all, &spec.Containers[i])
	}
	return all
}
