package statefulset

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/statefulset/internal/statefulset/plan"
)

// sameAsBuiltIn takes an absent imagePullPolicy for the one that the API server wrote into the template
// of a built-in StatefulSet. Everywhere else an absent one reads as Always, and a manifest that moves over
// from there would start a rollout.
func sameAsBuiltIn(stored, present *corev1.PodTemplateSpec) bool {
	read := present.DeepCopy()
	podspec.Default(&read.Spec, podspec.ServerDefault)
	for i := range present.Spec.Containers {
		if present.Spec.Containers[i].ImagePullPolicy == "" && i < len(stored.Spec.Containers) &&
			stored.Spec.Containers[i].ImagePullPolicy != read.Spec.Containers[i].ImagePullPolicy {
			read.Spec.Containers[i].ImagePullPolicy = corev1.PullAlways
		}
	}
	return podspec.Equal(stored, read, plan.DefaultPullPolicy)
}
