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

// FieldsAnnotation stands on the v1alpha1 form of a set: the JSON of the fields that v1alpha1 does not
// have, under spec and status as in the hub. Clients carry it along. Where it cannot be read it stays on
// the hub form, so that admission can refuse it: a conversion that fails would hide the set from every list.
const FieldsAnnotation = "apps.kruise.io/v1beta1-fields"

// parts are the parts of an object that have fields which v1alpha1 lacks.
func parts() []string { return []string{"spec", "status"} }

// fieldsOf are the names of the fields of a part that v1alpha1 lacks.
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

// read is the content of FieldsAnnotation: an object with the parts. It must hold the named fields and
// nothing else, each in the form that the hub has, because no schema looks at it.
func read(text string) (conversion.Object, error) {
	var kept conversion.Object
	if err := utiljson.Unmarshal([]byte(text), &kept); err != nil {
		return nil, err
	}
	for part, value := range kept {
		fields, ok := value.(conversion.Object)
		if !ok {
			return nil, fmt.Errorf("%s is no object", part)
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

// Unreadable says what is wrong with the FieldsAnnotation that a set in its hub form still has, or "".
func Unreadable(set *v1beta1.StatefulSet) string {
	text, ok := set.Annotations[FieldsAnnotation]
	if !ok {
		return ""
	}
	if _, err := read(text); err != nil {
		return fmt.Sprintf("not the fields of v1beta1 that v1alpha1 lacks: %v", err)
	}
	return "belongs to the v1alpha1 form: write its fields where v1beta1 has them"
}
