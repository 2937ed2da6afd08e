package ownership

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
)

// Release gives up a pod that the owner has.
func Release(pod *corev1.Pod, owner types.UID, message string) action.Action {
	return action.Action{
		Verb:        action.Release,
		Object:      pod,
		Independent: true,
		Reason:      "SelectorMismatch",
		Message:     message,
		Patches:     []action.Patch{ReferencesPatch([]types.UID{owner})},
	}
}

// AdoptPod is Adopt for a pod, on which nothing in a plan builds.
func AdoptPod(pod *corev1.Pod, ref metav1.OwnerReference, labels map[string]string, message string) action.Action {
	a := Adopt(pod, ref, labels, message)
	a.Independent = true
	return a
}

// Adopt takes an object without a controller, or writes labels to one that the owner has already. The
// reference names the owner as the controller; the labels may be nil.
func Adopt(o action.Object, ref metav1.OwnerReference, labels map[string]string, message string) action.Action {
	patch := ReferencesPatch(nil, ref)
	if len(labels) > 0 {
		values := make(map[string]any, len(labels))
		for key, value := range labels {
			values[key] = value
		}
		patch.Body["metadata"].(map[string]any)["labels"] = values
	}
	return action.Action{
		Verb:    action.Adopt,
		Object:  o,
		Reason:  "SelectorMatch",
		Message: message,
		Patches: []action.Patch{patch},
	}
}

// ReferencesPatch removes the references to the owners with the UIDs and writes others. All that are not named
// stay as they are.
func ReferencesPatch(remove []types.UID, write ...metav1.OwnerReference) action.Patch {
	references := make([]any, 0, len(remove)+len(write))
	for _, uid := range remove {
		references = append(references, map[string]any{"$patch": "delete", "uid": string(uid)})
	}
	for _, ref := range write {
		references = append(references, asMap(ref))
	}
	return action.Patch{Body: map[string]any{"metadata": map[string]any{"ownerReferences": references}}}
}

func asMap(ref metav1.OwnerReference) map[string]any {
	out := map[string]any{
		"apiVersion": ref.APIVersion,
		"kind":       ref.Kind,
		"name":       ref.Name,
		"uid":        string(ref.UID),
	}
	if ref.Controller != nil {
		out["controller"] = *ref.Controller
	}
	if ref.BlockOwnerDeletion != nil {
		out["blockOwnerDeletion"] = *ref.BlockOwnerDeletion
	}
	return out
}

// PodReference is a reference to the pod that does not make it the controller: the object goes with the pod.
func PodReference(pod *corev1.Pod) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: "v1",
		Kind:       "Pod",
		Name:       pod.Name,
		UID:        pod.UID,
	}
}

// SelectorText is the selector as status.labelSelector shows it to autoscalers; where it cannot be read, the text from
// before.
func SelectorText(selector *metav1.LabelSelector, before string) string {
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return before
	}
	return s.String()
}

// Controller is the reference to the object's controller when that is of the kind, in whichever version
// the reference names it; else nil.
func Controller(o metav1.Object, kind schema.GroupKind) *metav1.OwnerReference {
	ref := metav1.GetControllerOfNoCopy(o)
	if ref == nil || schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind() != kind {
		return nil
	}
	return ref
}
