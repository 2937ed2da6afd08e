package plan

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/subsets"
)

// defaultBackoffLimit is a Job's, from its API.
const defaultBackoffLimit = 6

// NeedsDeletable reports whether pods may be deleted, so that it must be known how many the workload can lose.
func NeedsDeletable(spread *v1beta1.WorkloadSpread, pods []*corev1.Pod) bool {
	if !subsets.Reschedules(spread) {
		return false
	}
	for _, pod := range pods {
		if _, waits := unschedulableSince(pod); waits {
			return true
		}
	}
	return false
}

// Deletable returns how many pods of a Job can be deleted before the Job fails: a pod that is deleted counts as failed.
// Pods are all that the Job has. One that is terminating may be counted already; it counts twice until it is gone. Where
// each index has a limit of its own, none can be deleted: the next one may be the last of its index.
func Deletable(job *batchv1.Job, pods []*corev1.Pod) int32 {
	if job.Spec.BackoffLimitPerIndex != nil {
		return 0
	}
	counted := job.Status.Failed
	seen := int32(0)
	leaving := int32(0)
	if uncounted := job.Status.UncountedTerminatedPods; uncounted != nil {
		counted += int32(len(uncounted.Failed))
	}
	for _, pod := range pods {
		switch {
		case pod.Status.Phase == corev1.PodFailed:
			seen++
		case pod.DeletionTimestamp != nil && pod.Status.Phase != corev1.PodSucceeded:
			leaving++
		}
	}
	return max(0, ptr.Deref(job.Spec.BackoffLimit, defaultBackoffLimit)-max(counted, seen)-leaving)
}

// setKept sets the condition of a spread that leaves pods where they cannot be scheduled.
func (c *computation) setKept(next *v1beta1.WorkloadSpreadStatus) {
	if c.kept == nil {
		return
	}
	c.tell(next, v1beta1.RescheduleLimited, metav1.ConditionTrue, v1beta1.ReasonBackoffLimit, fmt.Sprintf(
		"pod %s is unschedulable and stays: a deleted pod counts as failed, and one more failure would exceed the backoffLimit "+
			"of the Job. Raise backoffLimit, or make room for the pod", c.kept.Name))
}
