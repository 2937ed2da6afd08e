package simulate

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/judges"
)

const (
	// HookLabel with value HookTaken is the handler that AnswerHooks puts on pods and takes off.
	HookLabel = "hook"
	// HookTaken is the label's value on a pod whose hook is taken.
	HookTaken = "on"
)

// Hook returns a lifecycle hook that AnswerHooks answers.
func Hook() *workload.LifecycleHook {
	return &workload.LifecycleHook{LabelsHandler: map[string]string{HookLabel: HookTaken}}
}

// AnswerHooks adds a user's controller that answers the hooks of a workload, which hooks returns as they are at the
// time: it releases pods that prepare for an update or a deletion, and marks new or updated ones, each some time after
// it happened, whoever did it. A pod that is made with the hook preNormal must not become Normal for the first time
// without it.
func (w *World) AnswerHooks(after time.Duration, hooks func() *workload.Lifecycle) {
	w.checkPreNormal(hooks)
	w.OnEvent(func(w *World, e cluster.Event) {
		pod, ok := e.Object.(*corev1.Pod)
		if !ok || e.Type == cluster.Deleted || pod.DeletionTimestamp != nil || !callsForAnswer(e) {
			return
		}
		state := pod.Labels[contract.LifecycleStateLabel]
		w.After(after, func() {
			latest, ok := w.Latest(pod).(*corev1.Pod)
			if ok && latest.Labels[contract.LifecycleStateLabel] == state {
				w.answerHook(latest, state, hooks())
			}
		})
	})
}

func (w *World) checkPreNormal(hooks func() *workload.Lifecycle) {
	waiting := map[types.UID]bool{} // pods that were made with the hook and were never Normal
	w.OnEvent(func(w *World, e cluster.Event) {
		pod, ok := e.Object.(*corev1.Pod)
		if !ok {
			return
		}
		h := hooks()
		switch state := pod.Labels[contract.LifecycleStateLabel]; {
		case h == nil || h.PreNormal == nil: // edits of the hooks count for the pods after them
			clear(waiting)
		case e.Type == cluster.Added:
			waiting[pod.UID] = state == contract.LifecyclePreparingNormal && e.Actor == cluster.OperatorActor
		case waiting[pod.UID] && state == contract.LifecycleNormal:
			delete(waiting, pod.UID)
			if e.Actor == cluster.OperatorActor && pod.Labels[HookLabel] != HookTaken {
				w.Violate("pod %s becomes Normal without its hook preNormal", pod.Name)
			}
		}
	})
}

// callsForAnswer reports whether the operator wrote, or somebody else changed what answers a hook.
func callsForAnswer(e cluster.Event) bool {
	switch {
	case e.Actor == cluster.OperatorActor:
		return true
	case e.Actor == judges.HookActor, e.Old == nil:
		return false
	}
	is, was := e.Object.GetLabels(), e.Old.GetLabels()
	return is[contract.LifecycleStateLabel] != was[contract.LifecycleStateLabel] || is[HookLabel] != was[HookLabel]
}

func (w *World) answerHook(pod *corev1.Pod, state string, hooks *workload.Lifecycle) {
	_, taken := pod.Labels[HookLabel]
	switch state {
	case contract.LifecyclePreparingUpdate, contract.LifecyclePreparingDelete:
		if taken {
			w.Tell(judges.HookActor, "let pod %s go", pod.Name)
			_ = cluster.Change(w, judges.HookActor, "", pod, func(o *corev1.Pod) { delete(o.Labels, HookLabel) })
		}
	case contract.LifecycleUpdated, contract.LifecyclePreparingNormal:
		if !taken && hooks != nil && (hooks.PreNormal != nil || state == contract.LifecycleUpdated) {
			w.Tell(judges.HookActor, "take pod %s", pod.Name)
			_ = cluster.Change(w, judges.HookActor, "", pod, func(o *corev1.Pod) { o.Labels[HookLabel] = HookTaken })
		}
	}
}
