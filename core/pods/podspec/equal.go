package podspec

import (
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DefaultPullPolicy decides how a container without imagePullPolicy is read. Init containers are always read as the
// server reads them.
type DefaultPullPolicy string

// The readings.
const (
	// ServerDefault is the reading of the API server: Always for images without tag or with tag "latest", else
	// IfNotPresent. It is the zero value.
	ServerDefault DefaultPullPolicy = ""
	// PullAlways is Always whatever the image, as CloneSet and StatefulSet read it.
	PullAlways DefaultPullPolicy = "Always"
)

// Equal reports whether two templates mean the same: they are equal once both are defaulted. The time of creation is
// ignored, and an empty list or map is an absent one. Neither is changed.
func Equal(a, b *corev1.PodTemplateSpec, policy DefaultPullPolicy) bool {
	return apiequality.Semantic.DeepEqual(a, b) || apiequality.Semantic.DeepEqual(normalized(a, policy), normalized(b, policy))
}

func normalized(t *corev1.PodTemplateSpec, policy DefaultPullPolicy) *corev1.PodTemplateSpec {
	t = t.DeepCopy()
	t.CreationTimestamp = metav1.Time{}
	Default(&t.Spec, policy)
	return t
}
