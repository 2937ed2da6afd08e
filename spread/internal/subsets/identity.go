package subsets

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
)

// IsFixed reports whether workloads find their pods by a label: one of their selector's keys, or a label with the revision
// or the instance.
func IsFixed(label string, selector []string) bool {
	switch label {
	case contract.TemplateHashLabel, contract.RevisionLabel, contract.InstanceIDLabel:
		return true
	}
	return slices.Contains(selector, label)
}

// Estranged returns the fields that a patch has changed and by which a workload knows its pods: without them it creates
// another pod, and another. selector returns the keys of its selector; it is asked only if a label that the pod had has
// changed, and may be nil.
func Estranged(before, after *metav1.ObjectMeta, selector func() []string) (fields []string) {
	for field, kept := range map[string]bool{
		"metadata.name":            before.Name == after.Name,
		"metadata.generateName":    before.GenerateName == after.GenerateName,
		"metadata.namespace":       before.Namespace == after.Namespace,
		"metadata.uid":             before.UID == after.UID,
		"metadata.ownerReferences": equality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences),
	} {
		if !kept {
			fields = append(fields, field)
		}
	}
	changed := changedLabels(before.Labels, after.Labels)
	var keys []string
	if len(changed) > 0 && selector != nil {
		keys = selector()
	}
	for _, label := range changed {
		if IsFixed(label, keys) {
			fields = append(fields, "metadata.labels["+label+"]")
		}
	}
	slices.Sort(fields)
	return fields
}

// changedLabels returns the labels of before that after does not have with that value.
func changedLabels(before, after map[string]string) (changed []string) {
	for label, value := range before {
		if now, ok := after[label]; !ok || now != value {
			changed = append(changed, label)
		}
	}
	return changed
}

// EstrangedByPatch returns the fields that a patch changes of pods with the labels, as Estranged has it; selector are the
// keys of the workload's selector, as far as they are known. A patch that cannot be applied changes nothing.
func EstrangedByPatch(patch []byte, labels map[string]string, selector []string) []string {
	const some = "some"
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name:         some,
		GenerateName: some,
		Namespace:    some,
		UID:          some,
		Labels:       map[string]string{},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: some,
			Kind:       some,
			Name:       some,
			UID:        some,
			Controller: new(true),
		}},
	}}
	for _, label := range append([]string{contract.TemplateHashLabel, contract.RevisionLabel, contract.InstanceIDLabel}, selector...) {
		pod.Labels[label] = some
	}
	maps.Copy(pod.Labels, labels)
	before := pod.ObjectMeta.DeepCopy()
	if Patch(pod, patch) != nil {
		return nil
	}
	return Estranged(before, &pod.ObjectMeta, func() []string { return selector })
}

// HasLabels reports whether the patch of a subset sets labels, so that the selector of the target is to be known.
func HasLabels(spread *v1beta1.WorkloadSpread) bool {
	return slices.ContainsFunc(spread.Spec.Subsets, func(s v1beta1.WorkloadSpreadSubset) bool {
		var patch struct {
			Metadata struct{ Labels map[string]any } `json:"metadata"`
		}
		return json.Unmarshal(s.Patch.Raw, &patch) == nil && len(patch.Metadata.Labels) > 0
	})
}

// EstrangedText describes the error of a patch that changes the fields.
func EstrangedText(fields []string) string {
	return "changes " + strings.Join(fields, ", ") + ": the workload finds its pods by these fields"
}
