package marks

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
)

// annotations name the budget on a pod. Both have the same value.
func annotations() []string {
	return []string{v1beta1.RelatedAnnotation, v1beta1.LegacyRelatedAnnotation}
}

// Set puts the mark of the first budget on a pod that is being made.
func Set(pod *corev1.Pod, budgets []*v1beta1.PodUnavailableBudget) {
	for _, key := range annotations() {
		if len(budgets) > 0 {
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, key, budgets[0].Name)
		}
	}
}

// ofPod returns the plan that gives a pod the mark of the first of its budgets, and takes it away where there is none.
func ofPod(pod *corev1.Pod, budgets []*v1beta1.PodUnavailableBudget, known action.Refusals, now metav1.Time) action.Plan {
	p := action.Plan{Refusals: known, Now: now.Time}
	change := action.NewPodChange(pod, now)
	for _, key := range annotations() {
		if len(budgets) > 0 {
			change.SetAnnotation(key, budgets[0].Name)
		} else {
			change.RemoveAnnotation(key)
		}
	}
	patches := change.Patches()
	for i := range patches {
		patches[i].AnyVersion = true // no other client writes marks
	}
	if len(patches) > 0 {
		mark := action.Action{
			Verb:        action.PatchMetadata,
			Object:      pod,
			Independent: true,
			Patches:     patches,
			Reason:      "Mark",
		}
		p.Add(action.Step{Name: "mark", Actions: []action.Action{mark}})
	}
	return action.Admit(p)
}
