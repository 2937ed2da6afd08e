package lifecycle

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
)

func TestNotReadyKeysAreASortedSet(t *testing.T) {
	c := action.NewPodChange(podIn(normal), now)
	AddNotReadyKey(c, "b", "2")
	AddNotReadyKey(c, "b", "1")
	AddNotReadyKey(c, "a", "9")
	AddNotReadyKey(c, "b", "1")
	condition := c.Condition(contract.KruisePodReady)
	assert.Equal(t, corev1.ConditionFalse, condition.Status)
	assert.Equal(t, `[{"userAgent":"a","key":"9"},{"userAgent":"b","key":"1"},{"userAgent":"b","key":"2"}]`, condition.Message)

	RemoveNotReadyKey(c, "b", "1")
	RemoveNotReadyKey(c, "unknown", "1")
	assert.Equal(t, corev1.ConditionFalse, c.Condition(contract.KruisePodReady).Status)
	RemoveNotReadyKey(c, "b", "2")
	RemoveNotReadyKey(c, "a", "9")
	condition = c.Condition(contract.KruisePodReady)
	assert.Equal(t, corev1.ConditionTrue, condition.Status)
	assert.Equal(t, "[]", condition.Message)
}

func TestNotReadyKeyOnPodsInOddConditions(t *testing.T) {
	t.Run("without the readiness gate", func(t *testing.T) {
		pod := podIn(normal)
		pod.Spec.ReadinessGates = nil
		c := action.NewPodChange(pod, now)
		AddNotReadyKey(c, "a", "1")
		assert.True(t, c.Empty())
	})
	t.Run("without the condition it is False, not empty", func(t *testing.T) {
		pod := podIn(normal)
		pod.Status.Conditions = nil
		c := action.NewPodChange(pod, now)
		AddNotReadyKey(c, "a", "1")
		assert.Equal(t, corev1.ConditionFalse, c.Condition(contract.KruisePodReady).Status)
	})
	t.Run("an empty status is healed", func(t *testing.T) {
		pod := podIn(normal, held("x"))
		setCondition(pod, "", `[{"userAgent":"a","key":"1"}]`)
		c := action.NewPodChange(pod, now)
		AddNotReadyKey(c, "a", "1")
		assert.Equal(t, corev1.ConditionFalse, c.Condition(contract.KruisePodReady).Status)
	})
	t.Run("somebody's free text holds no key", func(t *testing.T) {
		pod := podIn(normal)
		setCondition(pod, corev1.ConditionTrue, "all is well")
		c := action.NewPodChange(pod, now)
		RemoveNotReadyKey(c, "a", "1")
		assert.True(t, c.Empty())
	})
	t.Run("a present key writes nothing", func(t *testing.T) {
		c := action.NewPodChange(podIn(normal, held("x")), now)
		AddNotReadyKey(c, contract.LifecycleUserAgent, "x")
		assert.True(t, c.Empty())
	})
}

func TestScaleUpCostsOneWriteAfterTheCreate(t *testing.T) {
	pod := podIn(preparingNormal)
	pod.Status.Conditions = nil
	pod.Spec.ReadinessGates = append(pod.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: contract.InPlaceUpdateReady})

	waiting := pod.DeepCopy()
	waiting.Spec.NodeName = ""
	c := action.NewPodChange(waiting, now)
	SetInitialReadiness(c)
	Refresh(c, nil, true)
	assert.True(t, c.Empty(), "nothing before the pod is scheduled")

	c = action.NewPodChange(pod, now)
	SetInitialReadiness(c)
	Refresh(c, nil, true)
	patches := c.Patches()
	require.Len(t, patches, 1)
	assert.Equal(t, "status", patches[0].Subresource)
	assert.Len(t, patches[0].Body["status"].(map[string]any)["conditions"], 2)
	metadata := patches[0].Body["metadata"].(map[string]any)
	assert.Equal(t, map[string]any{contract.LifecycleStateLabel: normal}, metadata["labels"])
	assert.Equal(t, map[string]any{contract.LifecycleTimestampAnnotation: "2026-01-01T12:00:00Z"}, metadata["annotations"])
}

func TestInitialReadyRespectsWhatIsThere(t *testing.T) {
	pod := podIn(normal, held("x"))
	c := action.NewPodChange(pod, now)
	SetInitialReadiness(c)
	assert.True(t, c.Empty(), "a condition that exists is not the first one")
}

func TestHooked(t *testing.T) {
	both := &workload.LifecycleHook{LabelsHandler: map[string]string{"hook": "on"}, FinalizersHandler: []string{"example.io/block"}}
	for name, tt := range map[string]struct {
		hook        *workload.LifecycleHook
		pod         *corev1.Pod
		hooked, all bool
	}{
		"no hook":             {nil, podIn(normal, hookTaken), false, false},
		"no handlers":         {&workload.LifecycleHook{}, podIn(normal, hookTaken), false, true},
		"none of two":         {both, podIn(normal), false, false},
		"label of two":        {both, podIn(normal, hookTaken), true, false},
		"finalizer of two":    {both, podIn(normal, finalizerTaken), true, false},
		"both":                {both, podIn(normal, hookTaken, finalizerTaken), true, true},
		"other value":         {&workload.LifecycleHook{LabelsHandler: map[string]string{"hook": "off"}}, podIn(normal, hookTaken), false, false},
		"absent is not empty": {&workload.LifecycleHook{LabelsHandler: map[string]string{"absent": ""}}, podIn(normal), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.hooked, Hooked(tt.hook, tt.pod))
			assert.Equal(t, tt.all, allHooked(tt.hook, action.NewPodChange(tt.pod, now)))
		})
	}
}

func TestValidate(t *testing.T) {
	path := field.NewPath("spec", "lifecycle")
	assert.Empty(t, Validate(nil, path))
	assert.Empty(t, Validate(&workload.Lifecycle{PreDelete: labelHook(true), InPlaceUpdate: finalizerHook(), PreNormal: &workload.LifecycleHook{}}, path))
	errs := Validate(&workload.Lifecycle{
		PreDelete:     &workload.LifecycleHook{LabelsHandler: map[string]string{"bad key": "ok"}},
		InPlaceUpdate: &workload.LifecycleHook{LabelsHandler: map[string]string{"good": "bad value"}},
		PreNormal:     &workload.LifecycleHook{FinalizersHandler: []string{"not a name"}},
	}, path)
	require.Len(t, errs, 3)
	for i, want := range []string{
		`spec.lifecycle.preDelete.labelsHandler: Invalid value: "bad key"`,
		`spec.lifecycle.inPlaceUpdate.labelsHandler: Invalid value: "bad value"`,
		`spec.lifecycle.preNormal.finalizersHandler: Invalid value: "not a name"`,
	} {
		assert.ErrorContains(t, errs[i], want)
	}
}
