package drain

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/workload"
)

// verdict is the decision of a drain about a pod.
type verdict int

const (
	// evicted pods leave, as budgets allow.
	evicted verdict = iota
	// stays: the pod belongs to its node.
	stays
	// refused: no controller would make the pod again, or its data would be lost; the user must ask for that.
	refused
)

// options are the user's choices.
type options struct {
	force           bool
	deleteEmptyDirs bool
	// skipAfter is after which time a pod that ends is not waited for; 0 for never.
	skipAfter time.Duration
}

// skips reports whether the deletion of a pod is too old to wait for its end.
func (o options) skips(pod *corev1.Pod, now time.Time) bool {
	return o.skipAfter > 0 && pod.DeletionTimestamp != nil && now.Sub(pod.DeletionTimestamp.Time) > o.skipAfter
}

// judge returns the verdict on a pod, and why it stays or is refused.
func judge(pod *corev1.Pod, o options, now time.Time) (verdict, string) {
	owner := metav1.GetControllerOfNoCopy(pod)
	switch {
	case o.skips(pod, now):
		return stays, "its deletion is older than " + o.skipAfter.String()
	case pod.Annotations[corev1.MirrorPodAnnotationKey] != "":
		return stays, "static pod"
	case pod.Status.Phase == corev1.PodSucceeded, pod.Status.Phase == corev1.PodFailed, pod.DeletionTimestamp != nil:
		return evicted, ""
	case owner != nil && isDaemonSet(owner):
		return stays, "pod of DaemonSet " + owner.Name
	case owner == nil && !o.force:
		return refused, "it has no controller that would recreate it; to evict it, add --force"
	case hasEmptyDir(pod) && !o.deleteEmptyDirs:
		return refused, "the data of its emptyDir volumes would be lost; to evict it, add --delete-emptydir-data"
	}
	return evicted, ""
}

// operatorsLast divides pods into pods of operators and other pods: while operators answer webhooks, the others can be
// evicted.
func operatorsLast(pods []*corev1.Pod) (others, operators []*corev1.Pod) {
	for _, pod := range pods {
		if pod.Namespace == catalog.Namespace {
			operators = append(operators, pod)
		} else {
			others = append(others, pod)
		}
	}
	return others, operators
}

// isDaemonSet knows both kinds of the name: DaemonSet of Kubernetes and DaemonSet of apps.kruise.io.
func isDaemonSet(owner *metav1.OwnerReference) bool {
	group, err := schema.ParseGroupVersion(owner.APIVersion)
	return err == nil && owner.Kind == "DaemonSet" && (group.Group == "apps" || group.Group == workload.Group)
}

func hasEmptyDir(pod *corev1.Pod) bool {
	for i := range pod.Spec.Volumes {
		if pod.Spec.Volumes[i].EmptyDir != nil {
			return true
		}
	}
	return false
}
