package subsets

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/utils/ptr"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
)

// Inject adds the rules of a subset to a new pod, and records that in its annotation. selector is as Estranged has it. An
// error is about the subset's patch; the pod is then not to be used.
func Inject(pod *corev1.Pod, subset *v1beta1.WorkloadSpreadSubset, match v1beta1.Match, selector func() []string) error {
	pod.Spec.Tolerations = append(slices.Clip(pod.Spec.Tolerations), subset.Tolerations...)
	if subset.RequiredNodeSelector != nil || len(subset.PreferredNodeSelector) > 0 {
		constrain(&pod.Spec, subset)
	}
	created := pod.ObjectMeta
	if err := Patch(pod, subset.Patch.Raw); err != nil {
		return fmt.Errorf("apply the patch of subset %s: %w", subset.Name, err)
	}
	if fields := Estranged(&created, &pod.ObjectMeta, selector); len(fields) > 0 {
		return fmt.Errorf("apply the patch of subset %s: %s", subset.Name, EstrangedText(fields))
	}
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, v1beta1.MatchedAnnotation, Text(match))
	return nil
}

func constrain(spec *corev1.PodSpec, subset *v1beta1.WorkloadSpreadSubset) {
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	a := spec.Affinity.NodeAffinity
	a.PreferredDuringSchedulingIgnoredDuringExecution = append(
		slices.Clip(a.PreferredDuringSchedulingIgnoredDuringExecution), subset.PreferredNodeSelector...)
	a.RequiredDuringSchedulingIgnoredDuringExecution = Narrowed(a.RequiredDuringSchedulingIgnoredDuringExecution, subset.RequiredNodeSelector)
}

// Narrowed adds a term to each of the selector's terms, of which one must hold.
func Narrowed(selector *corev1.NodeSelector, by *corev1.NodeSelectorTerm) *corev1.NodeSelector {
	if by == nil {
		return selector
	}
	if selector == nil || len(selector.NodeSelectorTerms) == 0 {
		return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{*by.DeepCopy()}}
	}
	out := selector.DeepCopy()
	for i := range out.NodeSelectorTerms {
		term := &out.NodeSelectorTerms[i]
		term.MatchExpressions = append(term.MatchExpressions, by.MatchExpressions...)
		term.MatchFields = append(term.MatchFields, by.MatchFields...)
	}
	return out
}

// Patch applies a strategic merge patch to the pod. Values that the API server has computed from another priority class are
// removed, so that it computes them again: it refuses a pod with other values than its class gives.
func Patch(pod *corev1.Pod, patch []byte) error {
	if len(patch) == 0 || string(patch) == "null" {
		return nil
	}
	before, err := json.Marshal(pod)
	if err != nil {
		return fmt.Errorf("encode the pod: %w", err)
	}
	after, err := strategicpatch.StrategicMergePatch(before, patch, &corev1.Pod{})
	if err != nil {
		return err
	}
	patched := &corev1.Pod{}
	if err := json.Unmarshal(after, patched); err != nil {
		return fmt.Errorf("decode the patched pod: %w", err)
	}
	if patched.Spec.PriorityClassName != pod.Spec.PriorityClassName {
		patched.Spec.Priority = nil
		if ptr.Equal(patched.Spec.PreemptionPolicy, pod.Spec.PreemptionPolicy) {
			patched.Spec.PreemptionPolicy = nil
		}
	}
	*pod = *patched
	return nil
}
