package scenarios

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/simulate"
)

// CopyPod makes a template what it is when somebody copies the manifest of a running pod.
func CopyPod(template *corev1.PodTemplateSpec) {
	if template.Annotations == nil {
		template.Annotations = map[string]string{}
	}
	for _, key := range contract.ControlLabels() {
		template.Labels[key] = contract.LifecyclePreparingDelete
	}
	for _, key := range contract.ControlAnnotations() {
		template.Annotations[key] = "{}"
	}
}

// CheckCopiedPod demands that a world whose template is the copy of a pod settles with as many pods as are wanted, and
// that no pod was created that went again.
func CheckCopiedPod(t *testing.T, w *simulate.World, p operator.Planner, want int) {
	t.Helper()
	made := 0
	w.OnEvent(func(_ *simulate.World, e cluster.Event) {
		if e.Type == cluster.Added && e.Kind == "Pod" {
			made++
		}
	})
	simulate.Settle(t, w, p, 500)
	assert.Equal(t, want, made, "pods created")
	assert.Len(t, w.Pods(), want)
}
