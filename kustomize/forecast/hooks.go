package forecast

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/nodes"

	"github.com/flotilla-project/flotilla/kustomize/workload"
)

// hookController is who answers the lifecycle hooks of the simulated cluster.
const hookController = "hooks"

// answerHooks lets each pod go a moment after the operator waits for a lifecycle hook, as the controller of the hook does.
func answerHooks(w *nodes.World, scene *Scene) {
	set, err := workload.Read(scene.Kind, scene.Set)
	if err != nil {
		return
	}
	w.OnEvent(func(e cluster.Event) {
		pod, isPod := e.Object.(*corev1.Pod)
		if !isPod || e.Type == cluster.Deleted {
			return
		}
		hook, present := hookOf(set.Lifecycle, workload.LifecycleOf(pod))
		if hook == nil || holds(pod, hook) == present {
			return
		}
		key, uid := cluster.KeyOf(pod), pod.UID
		w.After(moment, func() {
			if pod := w.Pod(key, uid); pod != nil {
				_ = cluster.Change(w, hookController, "", pod, func(p *corev1.Pod) { answer(p, hook, present) })
			}
		})
	})
}

// hookOf returns the hook that a pod in the state waits for, and whether its labels and finalizers must be there.
func hookOf(l workload.Lifecycle, state string) (hook *workload.Hook, present bool) {
	switch state {
	case workload.PreparingNormal:
		return l.PreNormal, true
	case workload.PreparingUpdate:
		return l.InPlaceUpdate, false
	case workload.Updated:
		return l.InPlaceUpdate, true
	case workload.PreparingDelete:
		return l.PreDelete, false
	}
	return nil, false
}

// holds reports whether the pod has all labels and finalizers of the hook.
func holds(pod *corev1.Pod, hook *workload.Hook) bool {
	for name, value := range hook.LabelsHandler {
		if pod.Labels[name] != value {
			return false
		}
	}
	for _, name := range hook.FinalizersHandler {
		if !slices.Contains(pod.Finalizers, name) {
			return false
		}
	}
	return true
}

func answer(pod *corev1.Pod, hook *workload.Hook, present bool) {
	pod.Finalizers = slices.DeleteFunc(slices.Clone(pod.Finalizers), func(name string) bool { return slices.Contains(hook.FinalizersHandler, name) })
	pod.Labels = maps.Clone(pod.Labels)
	maps.DeleteFunc(pod.Labels, func(name, _ string) bool { _, is := hook.LabelsHandler[name]; return is })
	if present {
		pod.Finalizers = append(pod.Finalizers, hook.FinalizersHandler...)
		if pod.Labels == nil {
			pod.Labels = map[string]string{}
		}
		maps.Copy(pod.Labels, hook.LabelsHandler)
	}
}
