package containermeta

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/pods/podspec"
)

// trim keeps the fields of a pod that this package reads. Of the metadata it removes managed fields, the configuration that
// kubectl applied last, and owners that do not control. Of each container and native sidecar it keeps name, image, and
// variables that read metadata and that no later one of their name hides. Of the status it keeps conditions, and names and
// IDs of containers, with the reasons for which they wait.
func trim(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	pod.ManagedFields = nil
	delete(pod.Annotations, corev1.LastAppliedConfigAnnotation)
	var owners []metav1.OwnerReference
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		owners = []metav1.OwnerReference{*owner}
	}
	pod.OwnerReferences = owners
	sidecars, sidecarStatuses := sidecarsOf(pod)
	pod.Spec = corev1.PodSpec{
		NodeName:       pod.Spec.NodeName,
		Containers:     trimContainers(pod.Spec.Containers),
		InitContainers: trimContainers(sidecars),
	}
	pod.Status = corev1.PodStatus{
		Phase:                 pod.Status.Phase,
		ContainerStatuses:     trimStatuses(pod.Status.ContainerStatuses),
		InitContainerStatuses: trimStatuses(sidecarStatuses),
		Conditions:            trimConditions(pod.Status.Conditions),
	}
	return pod, nil
}

// sidecarsOf returns the native sidecars of the pod and their statuses.
func sidecarsOf(pod *corev1.Pod) (sidecars []corev1.Container, statuses []corev1.ContainerStatus) {
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if !podspec.IsSidecar(c) {
			continue
		}
		sidecars = append(sidecars, *c)
		for j := range pod.Status.InitContainerStatuses {
			if pod.Status.InitContainerStatuses[j].Name == c.Name {
				statuses = append(statuses, pod.Status.InitContainerStatuses[j])
			}
		}
	}
	return sidecars, statuses
}

func trimContainers(containers []corev1.Container) []corev1.Container {
	if len(containers) == 0 {
		return nil
	}
	out := make([]corev1.Container, len(containers))
	for i := range containers {
		c := &containers[i]
		out[i] = corev1.Container{
			Name:          c.Name,
			Image:         c.Image,
			RestartPolicy: c.RestartPolicy,
		}
		for at, env := range c.Env {
			hidden := slices.ContainsFunc(c.Env[at+1:], func(later corev1.EnvVar) bool { return later.Name == env.Name })
			if !hidden && env.ValueFrom != nil && env.ValueFrom.FieldRef != nil && strings.HasPrefix(env.ValueFrom.FieldRef.FieldPath, "metadata.") {
				out[i].Env = append(out[i].Env, env)
			}
		}
	}
	return out
}

func trimStatuses(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	if len(statuses) == 0 {
		return nil
	}
	out := make([]corev1.ContainerStatus, len(statuses))
	for i := range statuses {
		out[i] = corev1.ContainerStatus{Name: statuses[i].Name, ContainerID: statuses[i].ContainerID}
		if waiting := statuses[i].State.Waiting; waiting != nil {
			out[i].State.Waiting = &corev1.ContainerStateWaiting{Reason: waiting.Reason}
		}
	}
	return out
}

func trimConditions(conditions []corev1.PodCondition) []corev1.PodCondition {
	out := make([]corev1.PodCondition, len(conditions))
	for i := range conditions {
		out[i] = corev1.PodCondition{Type: conditions[i].Type, Status: conditions[i].Status}
	}
	return out
}
