package lifecycle

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/testing/fuzz"
)

// The keys of a pod that is not ready are stored in the message of a condition, which any client can write that may write the
// status of pods.
func FuzzReadinessKeys(f *testing.F) {
	fuzz.Typed(f, fuzz.CRD{}, func(t *testing.T, _, pod *corev1.Pod) {
		t.Helper()
		c := action.NewPodChange(pod, metav1.Time{})
		SetInitialReadiness(c)
		AddNotReadyKey(c, "test", "key")
		condition := c.Condition(contract.KruisePodReady)
		if condition == nil {
			return // without the readiness gate
		}
		if len(notReadyKeys(c)) > 0 {
			assert.Equal(t, corev1.ConditionFalse, condition.Status)
		}
		RemoveNotReadyKey(c, "test", "key")
		assert.NotContains(t, notReadyKeys(c), notReadyKey{"test", "key"})
		if condition = c.Condition(contract.KruisePodReady); strings.TrimSpace(condition.Message) == "[]" {
			assert.Equal(t, corev1.ConditionTrue, condition.Status)
		}
	}, fuzz.Pods(f)...)
}
