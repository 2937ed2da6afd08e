package story

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/api/workload"
)

const hookKey = "example.io/hook"

// Handler is one of the two ways in which other controllers hold a pod in a lifecycle state.
type Handler struct {
	// Name tells them apart.
	Name string
	// Hook is the hook in the workload's spec.
	Hook workload.LifecycleHook
	// Take and Release are the changes of a pod by such a controller.
	Take, Release func(*corev1.Pod)
}

// Handlers returns both of them: by label and by finalizer.
func Handlers() []Handler {
	return []Handler{{
		Name:    "label",
		Hook:    workload.LifecycleHook{LabelsHandler: map[string]string{hookKey: "on"}},
		Take:    func(o *corev1.Pod) { o.Labels[hookKey] = "on" },
		Release: func(o *corev1.Pod) { delete(o.Labels, hookKey) },
	}, {
		Name: "finalizer",
		Hook: workload.LifecycleHook{FinalizersHandler: []string{hookKey}},
		Take: func(o *corev1.Pod) { o.Finalizers = append(o.Finalizers, hookKey) },
		Release: func(o *corev1.Pod) {
			o.Finalizers = slices.DeleteFunc(o.Finalizers, func(f string) bool { return f == hookKey })
		},
	}}
}

// TakenIn changes the template so that pods are created with the hook taken.
func (h Handler) TakenIn(template *corev1.PodTemplateSpec) {
	maps.Copy(template.Labels, h.Hook.LabelsHandler)
	template.Finalizers = h.Hook.FinalizersHandler
}
