package forecast

import (
	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// requests returns the requests of a pod as the scheduler and quotas count them, with its overhead: while a resize waits, the
// larger of the requests that the pod asks for and those that its node has given it; if it is infeasible, the latter.
func requests(pod *corev1.Pod) corev1.ResourceList {
	return resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{UseStatusResources: true})
}

// wanted returns the requests that the pod asks for, with its overhead.
func wanted(pod *corev1.Pod) corev1.ResourceList {
	return resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
}

func addTo(sum, more corev1.ResourceList) {
	for name, quantity := range more {
		total := sum[name]
		total.Add(quantity)
		sum[name] = total
	}
}

func subtractFrom(sum, less corev1.ResourceList) {
	for name, quantity := range less {
		total := sum[name]
		total.Sub(quantity)
		sum[name] = total
	}
}
