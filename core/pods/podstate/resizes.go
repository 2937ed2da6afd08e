package podstate

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
)

// ResizesForOthers are the entries of the pod's managedFields about resources that an update in place to another
// revision than the pod's label names has written last. The update was not recorded, or the pod has been updated again
// since.
func ResizesForOthers(pod *corev1.Pod) []metav1.ManagedFieldsEntry {
	var entries []metav1.ManagedFieldsEntry
	for _, e := range pod.ManagedFields {
		if hash := ResizedFor(e); hash != "" && hash != ShortHash(pod.Labels[contract.RevisionLabel]) {
			entries = append(entries, e)
		}
	}
	return entries
}

// ResizedFor is the short hash of the revision for which an update in place has written the fields of the entry; empty where
// something else has written them.
func ResizedFor(e metav1.ManagedFieldsEntry) string {
	if e.Subresource != "resize" {
		return ""
	}
	hash, ours := strings.CutPrefix(e.Manager, contract.ResizeManagerPrefix)
	if !ours {
		return ""
	}
	return hash
}
