package plan

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/flotilla-project/flotilla/core/action"
	"github.com/flotilla-project/flotilla/core/contract"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// controllerRef makes the set the controller of an object.
func controllerRef(set *v1beta1.CloneSet) metav1.OwnerReference {
	return *metav1.NewControllerRef(set, v1beta1.GroupVersion.WithKind(v1beta1.Kind))
}

// release gives up pods whose labels the selector no longer matches; spec.selector rules ownership.
func release(p *pass) {
	selector, err := metav1.LabelSelectorAsSelector(p.Set.Spec.Selector)
	if err != nil {
		return
	}
	step := action.Step{Name: StepOwn}
	p.pods = slices.DeleteFunc(p.pods, func(o pod) bool {
		if selector.Matches(labels.Set(o.Pod.Labels)) {
			return false
		}
		step.Actions = append(step.Actions, action.Action{
			Verb: action.Release, Object: o.Pod, Reason: "SelectorMismatch",
			Message: "its labels no longer match spec.selector",
			Patches: []action.Patch{{Body: map[string]any{"metadata": map[string]any{"ownerReferences": []any{
				map[string]any{"$patch": "delete", "uid": string(p.Set.UID)},
			}}}}},
		})
		return true
	})
	p.plan.Add(step)
}

// adopt takes pods without a controller that the selector matches. A pod without an instance id gets one.
func adopt(p *pass) {
	step := action.Step{Name: StepOwn}
	ref := controllerRef(p.Set)
	for _, o := range p.Orphans {
		meta := map[string]any{"ownerReferences": []any{map[string]any{
			"apiVersion": ref.APIVersion, "kind": ref.Kind, "name": ref.Name, "uid": string(ref.UID),
			"controller": true, "blockOwnerDeletion": true,
		}}}
		if o.Labels[contract.InstanceIDLabel] == "" {
			meta["labels"] = map[string]any{contract.InstanceIDLabel: p.freshID()}
		}
		step.Actions = append(step.Actions, action.Action{
			Verb: action.Adopt, Object: o, Reason: "SelectorMatch",
			Message: "it has no controller and matches spec.selector",
			Patches: []action.Patch{{Body: map[string]any{"metadata": meta}}},
		})
	}
	p.plan.Add(step)
}
