package containermeta

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/containermeta/plan"
)

// What the cache leaves of a pod is all that a plan has.
func TestAPodThatCannotStartIsReportedFromTheCache(t *testing.T) {
	pod := &corev1.Pod{}
	pod.Annotations = map[string]string{contract.RuntimeContainersMetaAnnotation: ""}
	pod.Spec.Containers = []corev1.Container{{Name: "app", Env: []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['a']"},
	}}}}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "app", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "long"}},
	}}
	kept, err := trim(pod)
	require.NoError(t, err)
	todo := plan.Compute(plan.Snapshot{Pod: kept.(*corev1.Pod), EnvFromMetadata: true})
	assert.JSONEq(t, `{"containers": []}`, todo.Annotation)
}
