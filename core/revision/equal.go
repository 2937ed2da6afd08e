package revision

import (
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PullPolicy says how a container without imagePullPolicy reads.
type PullPolicy int

// The readings. Init containers always read as PullByTag.
const (
	// PullAlways is Always whatever the image: CloneSet and StatefulSet.
	PullAlways PullPolicy = iota
	// PullByTag is what the API server makes of it: Always for images without tag or with tag
	// "latest", else IfNotPresent. DaemonSet.
	PullByTag
)

// Equal says whether two templates mean the same: they are equal once both are defaulted. The time
// of creation says nothing, and an empty list or map is an absent one. Neither is changed.
func Equal(a, b *corev1.PodTemplateSpec, absent PullPolicy) bool {
	return apiequality.Semantic.DeepEqual(a, b) || apiequality.Semantic.DeepEqual(normal(a, absent), normal(b, absent))
}

func normal(t *corev1.PodTemplateSpec, absent PullPolicy) *corev1.PodTemplateSpec {
	t = t.DeepCopy()
	t.CreationTimestamp = metav1.Time{}
	Default(&t.Spec, absent)
	return t
}
