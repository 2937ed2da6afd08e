package lifecycle

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/plan/action"
)

// Hooked reports whether any label or finalizer of the hook is on the pod. A nil hook holds nothing.
func Hooked(h *workload.LifecycleHook, pod *corev1.Pod) bool {
	return hooked(h, action.NewPodChange(pod, metav1.Time{}))
}

func hooked(h *workload.LifecycleHook, c *action.PodChange) bool {
	if h == nil {
		return false
	}
	for key, value := range h.LabelsHandler {
		if hasLabel(c, key, value) {
			return true
		}
	}
	return slices.ContainsFunc(h.FinalizersHandler, c.HasFinalizer)
}

// allHooked reports whether every label and every finalizer of the hook is on the pod. It is true for
// a hook without handlers and false for a nil hook.
func allHooked(h *workload.LifecycleHook, c *action.PodChange) bool {
	if h == nil {
		return false
	}
	for key, value := range h.LabelsHandler {
		if !hasLabel(c, key, value) {
			return false
		}
	}
	for _, name := range h.FinalizersHandler {
		if !c.HasFinalizer(name) {
			return false
		}
	}
	return true
}

// takeHook puts the hook's labels and finalizers on the pod.
func takeHook(c *action.PodChange, h *workload.LifecycleHook) {
	if h == nil {
		return
	}
	for key, value := range h.LabelsHandler {
		c.SetLabel(key, value)
	}
	for _, name := range h.FinalizersHandler {
		c.AddFinalizer(name)
	}
}

func hasLabel(c *action.PodChange, key, value string) bool {
	have, ok := c.LookupLabel(key)
	return ok && have == value
}

// Validate finds labels and finalizers in the hooks that no pod could carry. The path is the one of
// the lifecycle itself; a nil lifecycle is valid.
func Validate(l *workload.Lifecycle, path *field.Path) field.ErrorList {
	if l == nil {
		return nil
	}
	var errs field.ErrorList
	errs = append(errs, validateHook(l.PreDelete, path.Child("preDelete"))...)
	errs = append(errs, validateHook(l.InPlaceUpdate, path.Child("inPlaceUpdate"))...)
	errs = append(errs, validateHook(l.PreNormal, path.Child("preNormal"))...)
	return errs
}

func validateHook(h *workload.LifecycleHook, path *field.Path) field.ErrorList {
	if h == nil {
		return nil
	}
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(h.LabelsHandler)) {
		for _, message := range validation.IsQualifiedName(key) {
			errs = append(errs, field.Invalid(path.Child("labelsHandler"), key, message))
		}
		for _, message := range validation.IsValidLabelValue(h.LabelsHandler[key]) {
			errs = append(errs, field.Invalid(path.Child("labelsHandler"), h.LabelsHandler[key], message))
		}
	}
	for _, name := range h.FinalizersHandler {
		for _, message := range validation.IsQualifiedName(name) {
			errs = append(errs, field.Invalid(path.Child("finalizersHandler"), name, message))
		}
	}
	return errs
}
