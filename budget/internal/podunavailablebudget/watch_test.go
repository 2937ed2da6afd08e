package podunavailablebudget

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/disruption"
)

// All pods of the cluster are cached, most of which have no budget.
func TestTrimmedPodsKeepWhatDecides(t *testing.T) {
	condition := func(kind corev1.PodConditionType, status corev1.ConditionStatus) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, Status: status, Reason: "Reason", Message: "message", LastTransitionTime: metav1.Now()}
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      map[string]string{"app": "web"},
			Annotations: map[string]string{v1beta1.RelatedAnnotation: "web", v1beta1.NoProtectAnnotation: "true", "example.io/other": "long"},
		},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyAlways, Containers: []corev1.Container{{Name: "main"}},
			ReadinessGates: []corev1.PodReadinessGate{{ConditionType: contract.InPlaceUpdateReady}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, ObservedGeneration: 1, ContainerStatuses: []corev1.ContainerStatus{{Name: "main"}},
			Conditions: []corev1.PodCondition{
				condition(corev1.PodScheduled, corev1.ConditionTrue), condition(corev1.PodReady, corev1.ConditionTrue),
				condition(contract.InPlaceUpdateReady, corev1.ConditionFalse), condition(contract.KruisePodReady, corev1.ConditionTrue),
			},
		},
	}
	protected, available := disruption.IsProtected(pod), disruption.IsAvailable(pod)
	for range 2 { // a watch that begins anew trims again
		trimmed, err := trim(pod)
		require.NoError(t, err)
		assert.Same(t, pod, trimmed)
		assert.Equal(t, map[string]string{"app": "web"}, pod.Labels)
		assert.Equal(t, map[string]string{v1beta1.RelatedAnnotation: "web", v1beta1.NoProtectAnnotation: "true"}, pod.Annotations)
		assert.Empty(t, pod.Spec.Containers)
		assert.Empty(t, pod.Status.ContainerStatuses)
		assert.Equal(t, []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue},
			{Type: contract.InPlaceUpdateReady, Status: corev1.ConditionFalse},
			{Type: contract.KruisePodReady, Status: corev1.ConditionTrue},
		}, pod.Status.Conditions)
		assert.Equal(t, protected, disruption.IsProtected(pod))
		assert.Equal(t, available, disruption.IsAvailable(pod))
	}
}
