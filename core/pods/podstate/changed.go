package podstate

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
)

// Changed reports whether a workload's plan can read anything in the new version of a pod that it did not read in the
// old one. Kubelets write a pod's status many times; a workload has to think only when this is true. Of a pod that does
// not serve it reads the trouble, of one that serves and was never updated in place only which containers run and how
// often they were restarted. All of their status counts while the pod is in the middle of something: not in lifecycle
// state Normal, held by an update, or with the record of one, since a resize continues while the pod serves. The
// passing of time is the plan's own affair.
func Changed(old, now *corev1.Pod) bool {
	return old.UID != now.UID ||
		old.Generation != now.Generation ||
		(old.DeletionTimestamp == nil) != (now.DeletionTimestamp == nil) ||
		old.Spec.NodeName != now.Spec.NodeName ||
		old.Status.Phase != now.Status.Phase ||
		!maps.Equal(old.Labels, now.Labels) ||
		!maps.Equal(old.Annotations, now.Annotations) ||
		!slices.Equal(old.Finalizers, now.Finalizers) ||
		controllerOf(old) != controllerOf(now) ||
		readinessChanged(old, now) ||
		TroubleOf(old) != TroubleOf(now) ||
		!slices.EqualFunc(old.Status.ContainerStatuses, now.Status.ContainerStatuses, sameContainer) ||
		unsettled(now) && progressChanged(old, now)
}

func controllerOf(pod *corev1.Pod) string {
	if ref := metav1.GetControllerOfNoCopy(pod); ref != nil {
		return string(ref.UID)
	}
	return ""
}

func readinessChanged(old, now *corev1.Pod) bool {
	for _, t := range []corev1.PodConditionType{corev1.PodReady, contract.InPlaceUpdateReady, contract.KruisePodReady} {
		a, b := Condition(old, t), Condition(now, t)
		if (a == nil) != (b == nil) {
			return true
		}
		if a != nil && (a.Status != b.Status || a.Message != b.Message && t == contract.KruisePodReady ||
			!a.LastTransitionTime.Equal(&b.LastTransitionTime)) {
			return true
		}
	}
	return false
}

// sameContainer reports whether two statuses are about the same run of a container.
func sameContainer(a, b corev1.ContainerStatus) bool {
	return a.Name == b.Name && a.ContainerID == b.ContainerID && a.RestartCount == b.RestartCount
}

func unsettled(pod *corev1.Pod) bool {
	state := pod.Labels[contract.LifecycleStateLabel]
	return state != "" && state != contract.LifecycleNormal || HeldByUpdate(pod) ||
		pod.Annotations[contract.InPlaceUpdateStateAnnotation] != "" || pod.Annotations[contract.LegacyInPlaceUpdateStateAnnotation] != ""
}

func progressChanged(old, now *corev1.Pod) bool {
	return old.Status.ObservedGeneration != now.Status.ObservedGeneration ||
		!equality.Semantic.DeepEqual(old.Status.ContainerStatuses, now.Status.ContainerStatuses) ||
		!equality.Semantic.DeepEqual(old.Status.InitContainerStatuses, now.Status.InitContainerStatuses) ||
		!equality.Semantic.DeepEqual(old.Status.Conditions, now.Status.Conditions)
}
