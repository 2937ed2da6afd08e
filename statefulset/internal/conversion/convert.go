package conversion

import (
	"maps"

	"github.com/flotilla-project/flotilla/core/operator/conversion"
	"github.com/flotilla-project/flotilla/statefulset/api/v1alpha1"
	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// Convert returns the JSON of a StatefulSet in the wanted apiVersion. Fields are copied as they were written: "cpu:
// 0.5" is not rewritten, and an explicit false is not removed.
func Convert(raw []byte, apiVersion string) ([]byte, error) {
	hub := v1beta1.GroupVersion.String()
	spoke := v1alpha1.GroupVersion.String()
	return conversion.Versions{Hub: hub, Spoke: spoke, ToHub: toHub, FromHub: fromHub}.Convert(raw, apiVersion)
}

// ToHub fills an empty hub object from a v1alpha1 one.
func ToHub(src *v1alpha1.StatefulSet, dst *v1beta1.StatefulSet) error {
	return conversion.ViaJSON(src, dst, toHub)
}

// FromHub fills an empty v1alpha1 object from the hub.
func FromHub(src *v1beta1.StatefulSet, dst *v1alpha1.StatefulSet) error {
	return conversion.ViaJSON(src, dst, fromHub)
}

// toHub moves the fields in FieldsAnnotation to their places in the hub.
func toHub(src conversion.Object) (conversion.Object, error) {
	out := maps.Clone(src)
	text, ok := conversion.AnnotationIn(src, FieldsAnnotation)
	if !ok {
		return out, nil
	}
	kept, err := read(text)
	if err != nil {
		return out, nil //nolint:nilerr // admission has the word
	}
	conversion.RemoveAnnotationFrom(out, FieldsAnnotation)
	for _, part := range parts() {
		if fields := conversion.Member(kept, part); len(fields) > 0 {
			out[part] = conversion.WithMembers(conversion.Member(src, part), fields, fieldsOf(part)...)
		}
	}
	return out, nil
}

// fromHub moves the fields that v1alpha1 lacks into FieldsAnnotation.
func fromHub(src conversion.Object) (conversion.Object, error) {
	out := maps.Clone(src)
	kept := conversion.Object{}
	for _, part := range parts() {
		whole := conversion.Member(src, part)
		names := fieldsOf(part)
		if fields := conversion.WithMembers(nil, whole, names...); len(fields) > 0 {
			out[part] = conversion.WithMembers(whole, nil, names...)
			kept[part] = fields
		}
	}
	if len(kept) == 0 {
		return out, nil
	}
	return out, conversion.PutAnnotationIn(out, FieldsAnnotation, kept)
}
