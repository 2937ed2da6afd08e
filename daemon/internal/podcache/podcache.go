package podcache

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/scope"

	"github.com/flotilla-project/flotilla/daemon/internal/podmarks"
)

// ByObject returns the cache of pods, trimmed by Trim, in one namespace or, when it is empty, in all.
func ByObject(namespace string) cache.ByObject {
	return fastclient.Within(namespace, cache.ByObject{Transform: Trim})
}

// Filter returns the filter for a cache of the pods that concern container launch priority.
func Filter() *scope.Filter { return scope.NewFilter(podmarks.IsRelevant) }

// Trim keeps the fields of a pod that decide about container launch priority: identity, controller and deletion timestamp; node,
// readiness gates and launch barriers; phase, conditions and container states.
func Trim(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil // trimmed already, or DeletedFinalStateUnknown
	}
	kept := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace:         pod.Namespace,
		Name:              pod.Name,
		UID:               pod.UID,
		ResourceVersion:   pod.ResourceVersion,
		CreationTimestamp: pod.CreationTimestamp,
		DeletionTimestamp: pod.DeletionTimestamp,
	}}
	if owner := metav1.GetControllerOf(pod); owner != nil {
		kept.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	if value, ok := pod.Annotations[contract.ContainerLaunchPriorityCompletedAnnotation]; ok {
		kept.Annotations = map[string]string{contract.ContainerLaunchPriorityCompletedAnnotation: value}
	}
	kept.Spec = corev1.PodSpec{
		NodeName:       pod.Spec.NodeName,
		ReadinessGates: pod.Spec.ReadinessGates,
		Containers:     barriers(pod.Spec.Containers),
	}
	kept.Status = corev1.PodStatus{
		Phase:             pod.Status.Phase,
		Conditions:        conditions(pod.Status.Conditions),
		ContainerStatuses: states(pod.Status.ContainerStatuses),
	}
	return kept, nil
}

// barriers returns the containers that have a launch barrier, with nothing else.
func barriers(containers []corev1.Container) []corev1.Container {
	var kept []corev1.Container
	for i := range containers {
		for _, e := range containers[i].Env {
			if e.Name == contract.ContainerBarrierEnv {
				kept = append(kept, corev1.Container{Name: containers[i].Name, Env: []corev1.EnvVar{e}})
			}
		}
	}
	return kept
}

func conditions(all []corev1.PodCondition) []corev1.PodCondition {
	read := []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady, contract.KruisePodReady, contract.InPlaceUpdateReady}
	return slices.DeleteFunc(slices.Clone(all), func(c corev1.PodCondition) bool { return !slices.Contains(read, c.Type) })
}

func states(all []corev1.ContainerStatus) []corev1.ContainerStatus {
	var kept []corev1.ContainerStatus
	for i := range all {
		kept = append(kept, corev1.ContainerStatus{
			Name:  all[i].Name,
			Ready: all[i].Ready,
			State: all[i].State,
		})
	}
	return kept
}
