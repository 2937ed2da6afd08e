package conversion

import (
	"errors"
	"fmt"
	"slices"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/json"

	"github.com/flotilla-project/flotilla/core/operator/conversion"
	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// FieldsAnnotation is set on v1alpha1 objects. It has the fields that v1alpha1 does not have, as JSON, under spec and
// status as in the hub. Clients carry it along. If it cannot be decoded it stays on the hub object, so that admission
// can reject it: a conversion must not fail for that, because the set would be missing in every list.
const FieldsAnnotation = "apps.kruise.io/v1beta1-fields"

// parts returns the parts of an object that have fields which v1alpha1 lacks.
func parts() []string { return []string{"spec", "status"} }

// fieldsOf returns the names of the fields of a part that v1alpha1 lacks.
func fieldsOf(part string) []string {
	switch part {
	case "spec":
		return []string{
			"volumeClaimUpdateStrategy", "reserveOrdinals", "lifecycle", "scaleStrategy",
			"persistentVolumeClaimRetentionPolicy", "ordinals",
		}
	case "status":
		return []string{"updatedReadyReplicas", "updatedAvailableReplicas", "volumeClaims"}
	}
	return nil
}

// read decodes FieldsAnnotation: an object with the parts. It may have the named fields only, each of the hub's type,
// because no schema validates it.
func read(text string) (conversion.Object, error) {
	var kept conversion.Object
	if err := utiljson.Unmarshal([]byte(text), &kept); err != nil {
		return nil, err
	}
	for part, value := range kept {
		fields, ok := value.(conversion.Object)
		if !ok {
			return nil, fmt.Errorf("%s must be an object", part)
		}
		for name := range fields {
			if !slices.Contains(fieldsOf(part), name) {
				return nil, fmt.Errorf("unknown field %s.%s", part, name)
			}
		}
	}
	var hub struct {
		Spec   v1beta1.StatefulSetSpec   `json:"spec"`
		Status v1beta1.StatefulSetStatus `json:"status"`
	}
	strict, err := json.UnmarshalStrict([]byte(text), &hub)
	return kept, errors.Join(append(strict, err)...)
}

// Unreadable returns why a hub object still has FieldsAnnotation, or "" if it has none.
func Unreadable(set *v1beta1.StatefulSet) string {
	text, ok := set.Annotations[FieldsAnnotation]
	if !ok {
		return ""
	}
	if _, err := read(text); err != nil {
		return fmt.Sprintf("must have only the fields that v1alpha1 lacks: %v", err)
	}
	return "is only read in v1alpha1: in v1beta1, set the fields themselves and remove the annotation"
}
