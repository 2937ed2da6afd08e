package broadcastjob

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/broadcastjob/plan"
)

// Pods returns the settings of a cache of the pods of BroadcastJobs, trimmed to the fields that plans read.
func Pods() cache.ByObject {
	return cache.ByObject{Label: fastclient.WithLabel(v1beta1.BroadcastJobUIDLabel), Transform: trimPod}
}

// addIndexes adds the indexes by which passes find pods.
func addIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	return fastclient.IndexOwners(ctx, indexer, &corev1.Pod{})
}

// trimPod keeps where a pod runs, whether it restarts, how often it has, when it was deleted, and how it ended.
func trimPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil // a deletion that the watch missed; it holds a trimmed object
	}
	s, st := &pod.Spec, &pod.Status
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:                  pod.Namespace,
			Name:                       pod.Name,
			UID:                        pod.UID,
			ResourceVersion:            pod.ResourceVersion,
			Labels:                     pod.Labels,
			CreationTimestamp:          pod.CreationTimestamp,
			OwnerReferences:            pod.OwnerReferences,
			DeletionTimestamp:          pod.DeletionTimestamp,
			DeletionGracePeriodSeconds: pod.DeletionGracePeriodSeconds,
		},
		Spec: corev1.PodSpec{
			NodeName:              s.NodeName,
			Affinity:              pin(s),
			RestartPolicy:         s.RestartPolicy,
			ActiveDeadlineSeconds: s.ActiveDeadlineSeconds,
		},
		Status: corev1.PodStatus{
			Phase:                 st.Phase,
			Reason:                st.Reason,
			Message:               plan.Shorten(st.Message),
			Conditions:            trimConditions(st),
			InitContainerStatuses: trimStatuses(st.InitContainerStatuses),
			ContainerStatuses:     trimStatuses(st.ContainerStatuses),
		},
	}, nil
}

// pin keeps which node a pod without one is required to be scheduled to.
func pin(s *corev1.PodSpec) *corev1.Affinity {
	if s.NodeName != "" || s.Affinity == nil || s.Affinity.NodeAffinity == nil {
		return nil
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: s.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
	}}
}

func trimStatuses(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	var trimmed []corev1.ContainerStatus
	for i := range statuses {
		s := &statuses[i]
		trimmed = append(trimmed, corev1.ContainerStatus{
			Name:                 s.Name,
			RestartCount:         s.RestartCount,
			State:                corev1.ContainerState{Terminated: trimEnd(s.State.Terminated)},
			LastTerminationState: corev1.ContainerState{Terminated: trimEnd(s.LastTerminationState.Terminated)},
		})
	}
	return trimmed
}

func trimEnd(end *corev1.ContainerStateTerminated) *corev1.ContainerStateTerminated {
	if end == nil {
		return nil
	}
	return &corev1.ContainerStateTerminated{
		ExitCode:   end.ExitCode,
		Reason:     end.Reason,
		Message:    plan.Shorten(end.Message),
		FinishedAt: end.FinishedAt,
	}
}

// trimConditions keeps the fields that rules of podFailurePolicy read, of pods that have failed.
func trimConditions(st *corev1.PodStatus) []corev1.PodCondition {
	if st.Phase != corev1.PodFailed {
		return nil
	}
	var trimmed []corev1.PodCondition
	for i := range st.Conditions {
		c := &st.Conditions[i]
		trimmed = append(trimmed, corev1.PodCondition{
			Type:               c.Type,
			Status:             c.Status,
			LastTransitionTime: c.LastTransitionTime,
		})
	}
	return trimmed
}
