package conversion

import (
	"encoding/json"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AcceptLossAnnotation set to "true" by a user allows an update through an older version to remove fields that the older
// version cannot express.
const AcceptLossAnnotation = "apps.kruise.io/accept-v1alpha1-loss"

// PutAnnotation stores the value, which an older version has no field for, as JSON in an annotation of that version.
// Conversion alone writes and reads it; clients carry it along. An update by a client that drops it is refused (Loss),
// unless the object accepts that (AcceptsLoss).
func PutAnnotation(meta *metav1.ObjectMeta, annotation string, value any) error {
	text, err := textOf(annotation, value)
	if err != nil {
		return err
	}
	metav1.SetMetaDataAnnotation(meta, annotation, text)
	return nil
}

// TakeAnnotation removes an annotation and decodes it into value, which is unchanged if there is none. One that cannot be
// decoded counts as absent: a conversion must not fail for that, because the object would be missing in every list.
func TakeAnnotation(meta *metav1.ObjectMeta, annotation string, value any) {
	text, ok := meta.Annotations[annotation]
	if !ok {
		return
	}
	delete(meta.Annotations, annotation)
	_ = json.Unmarshal([]byte(text), value)
}

// PutAnnotationIn is PutAnnotation for a decoded object. It copies the metadata of the object.
func PutAnnotationIn(object Object, annotation string, value any) error {
	text, err := textOf(annotation, value)
	if err != nil {
		return err
	}
	annotations := maps.Clone(Member(object, "metadata", "annotations"))
	if annotations == nil {
		annotations = Object{}
	}
	annotations[annotation] = text
	object["metadata"] = WithMembers(Member(object, "metadata"), Object{"annotations": annotations}, "annotations")
	return nil
}

// AnnotationIn returns the text of an annotation of a decoded object, and whether it has one.
func AnnotationIn(object Object, annotation string) (string, bool) {
	text, ok := Member(object, "metadata", "annotations")[annotation].(string)
	return text, ok
}

// RemoveAnnotationFrom removes an annotation of a decoded object. It copies the metadata of the object.
func RemoveAnnotationFrom(object Object, annotation string) {
	annotations := WithMembers(Member(object, "metadata", "annotations"), nil, annotation)
	if len(annotations) == 0 {
		object["metadata"] = WithMembers(Member(object, "metadata"), nil, "annotations")
		return
	}
	object["metadata"] = WithMembers(Member(object, "metadata"), Object{"annotations": annotations}, "annotations")
}

// Loss is the message for a user of v1alpha1 about something that the version cannot express and the annotation keeps.
func Loss(what, annotation string) string {
	return fmt.Sprintf("v1alpha1 cannot express %s: keep annotation %s, use v1beta1, or set annotation %s to \"true\"", what, annotation, AcceptLossAnnotation)
}

func textOf(annotation string, value any) (string, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("write annotation %s: %w", annotation, err)
	}
	return string(text), nil
}

// AcceptsLoss reports whether the user allows an update through an older version to remove fields that it cannot express.
func AcceptsLoss(object metav1.Object) bool {
	return object.GetAnnotations()[AcceptLossAnnotation] == "true"
}
