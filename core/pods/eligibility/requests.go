package eligibility

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
)

// requestsOf returns the requests of the pod of a template, together with its overhead. A template is stored as the
// user wrote it: a resource with a limit and without a request requests its limit, as the API server fills in when it
// creates a pod. The pod is changed.
func requestsOf(pod *corev1.Pod) corev1.ResourceList {
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			fill(&containers[i].Resources, func(corev1.ResourceName) bool { return true })
		}
	}
	if whole := pod.Spec.Resources; whole != nil {
		asked := resource.AggregateContainerRequests(pod, resource.PodResourcesOptions{})
		fill(whole, func(name corev1.ResourceName) bool { // the requests of containers are requests of the pod, too
			_, known := asked[name]
			return resource.IsSupportedPodLevelResource(name) && !known
		})
	}
	return resource.PodRequests(pod, resource.PodResourcesOptions{})
}

// fill adds the limits that concern to the requests that are absent.
func fill(r *corev1.ResourceRequirements, concerns func(corev1.ResourceName) bool) {
	for name, limit := range r.Limits {
		if _, there := r.Requests[name]; there || !concerns(name) {
			continue
		}
		if r.Requests == nil {
			r.Requests = corev1.ResourceList{}
		}
		r.Requests[name] = limit
	}
}
