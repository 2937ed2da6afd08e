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

// Of init containers native sidecars are left, with what the plan reads of them.
func TestNativeSidecarsStayInTheCache(t *testing.T) {
	always := new(corev1.ContainerRestartPolicyAlways)
	pod := &corev1.Pod{}
	pod.Spec.InitContainers = []corev1.Container{{Name: "setup", Image: "setup:1"}, {Name: "mesh", Image: "mesh:1", RestartPolicy: always, Command: []string{"run"}}}
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "setup", ContainerID: "s"}, {Name: "mesh", ContainerID: "m", Image: "mesh:1"}}
	kept, err := trim(pod)
	require.NoError(t, err)
	assert.Equal(t, []corev1.Container{{Name: "mesh", Image: "mesh:1", RestartPolicy: always}}, kept.(*corev1.Pod).Spec.InitContainers)
	assert.Equal(t, []corev1.ContainerStatus{{Name: "mesh", ContainerID: "m"}}, kept.(*corev1.Pod).Status.InitContainerStatuses)
}
