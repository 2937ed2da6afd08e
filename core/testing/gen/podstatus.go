package gen

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OnNode assigns the pod to a node.
func OnNode(node string) PodOption {
	return func(pod *corev1.Pod) { pod.Spec.NodeName = node }
}

// Image sets the image of a container, which is added when there is none of the name.
func Image(container, image string) PodOption {
	return func(pod *corev1.Pod) {
		for i := range pod.Spec.Containers {
			if pod.Spec.Containers[i].Name == container {
				pod.Spec.Containers[i].Image = image
				return
			}
		}
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: container, Image: image})
	}
}

// ReadinessGate adds a readiness gate.
func ReadinessGate(t corev1.PodConditionType) PodOption {
	return func(pod *corev1.Pod) {
		pod.Spec.ReadinessGates = append(pod.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: t})
	}
}

// Phase sets the pod's phase.
func Phase(phase corev1.PodPhase) PodOption {
	return func(pod *corev1.Pod) { pod.Status.Phase = phase }
}

// Ready makes the pod run with all containers ready since a moment, on Node when it has no node.
func Ready(since time.Time) PodOption {
	return func(pod *corev1.Pod) { run(pod, corev1.ConditionTrue, since) }
}

// NotReady makes the pod run without being ready since a moment, on Node when it has no node.
func NotReady(since time.Time) PodOption {
	return func(pod *corev1.Pod) { run(pod, corev1.ConditionFalse, since) }
}

// Waiting makes the pod wait since a moment, on Node when it has no node: all its containers for the reason.
func Waiting(reason string, since time.Time) PodOption {
	return func(pod *corev1.Pod) {
		run(pod, corev1.ConditionFalse, since)
		pod.Status.Phase = corev1.PodPending
		for i := range pod.Status.ContainerStatuses {
			s := &pod.Status.ContainerStatuses[i]
			s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "as the kubelet says it this time"}}
		}
	}
}

// Unschedulable leaves the pod pending without a node since a moment, for the reason.
func Unschedulable(reason string, since time.Time) PodOption {
	return func(pod *corev1.Pod) {
		pod.Spec.NodeName = ""
		pod.Status = corev1.PodStatus{Phase: corev1.PodPending}
		Condition(corev1.PodScheduled, corev1.ConditionFalse, since)(pod)
		c := &pod.Status.Conditions[0]
		c.Reason, c.Message = reason, "0/3 nodes are available"
	}
}

// Condition sets a condition that has its status since a moment; the zero time unsets the moment.
func Condition(t corev1.PodConditionType, status corev1.ConditionStatus, since time.Time) PodOption {
	return func(pod *corev1.Pod) {
		c := corev1.PodCondition{
			Type:               t,
			Status:             status,
			LastTransitionTime: metav1.NewTime(since),
		}
		for i := range pod.Status.Conditions {
			if pod.Status.Conditions[i].Type == t {
				pod.Status.Conditions[i] = c
				return
			}
		}
		pod.Status.Conditions = append(pod.Status.Conditions, c)
	}
}

// Restarts sets how often each container was restarted.
func Restarts(count int32) PodOption {
	return func(pod *corev1.Pod) {
		reportContainers(pod)
		for i := range pod.Status.ContainerStatuses {
			pod.Status.ContainerStatuses[i].RestartCount = count
		}
	}
}

func run(pod *corev1.Pod, ready corev1.ConditionStatus, since time.Time) {
	if pod.Spec.NodeName == "" {
		pod.Spec.NodeName = Node
	}
	pod.Status.Phase = corev1.PodRunning
	Condition(corev1.PodScheduled, corev1.ConditionTrue, since)(pod)
	Condition(corev1.ContainersReady, ready, since)(pod)
	Condition(corev1.PodReady, ready, since)(pod)
	reportContainers(pod)
	for i := range pod.Status.ContainerStatuses {
		pod.Status.ContainerStatuses[i].Ready = ready == corev1.ConditionTrue
	}
}

// reportContainers adds a status for each container that has none, as a kubelet does.
func reportContainers(pod *corev1.Pod) {
	for i := len(pod.Status.ContainerStatuses); i < len(pod.Spec.Containers); i++ {
		c, started := pod.Spec.Containers[i], true
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name:        c.Name,
			Image:       c.Image,
			ImageID:     "sha256:" + c.Image,
			ContainerID: "containerd://" + pod.Name + "-" + c.Name + "-0",
			Started:     &started,
		})
	}
}
