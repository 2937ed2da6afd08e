package conversion

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/flotilla-project/flotilla/core/operator/conversion"
	"github.com/flotilla-project/flotilla/statefulset/api/v1alpha1"
	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// Convert returns the JSON of a StatefulSet in the wanted apiVersion. Every field that it carries over is
// as it was written: "cpu: 0.5" stays, and so does a false that a user wrote down.
func Convert(raw []byte, apiVersion string) ([]byte, error) {
	hub, spoke := v1beta1.GroupVersion.String(), v1alpha1.GroupVersion.String()
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

// toHub puts the fields in FieldsAnnotation where the hub has them.
func toHub(src conversion.Object) (conversion.Object, error) {
	out := maps.Clone(src)
	text, ok := conversion.Member(src, "metadata", "annotations")[FieldsAnnotation].(string)
	if !ok {
		return out, nil
	}
	kept, err := read(text)
	if err != nil {
		return out, nil //nolint:nilerr // admission has the word
	}
	annotate(out, nil)
	for _, part := range parts() {
		if fields := conversion.Member(kept, part); len(fields) > 0 {
			out[part] = conversion.WithMembers(conversion.Member(src, part), fields, fieldsOf(part)...)
		}
	}
	return out, nil
}

// fromHub moves what v1alpha1 lacks into FieldsAnnotation.
func fromHub(src conversion.Object) (conversion.Object, error) {
	out, kept := maps.Clone(src), conversion.Object{}
	for _, part := range parts() {
		whole, names := conversion.Member(src, part), fieldsOf(part)
		if fields := conversion.WithMembers(nil, whole, names...); len(fields) > 0 {
			out[part], kept[part] = conversion.WithMembers(whole, nil, names...), fields
		}
	}
	if len(kept) == 0 {
		return out, nil
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return nil, fmt.Errorf("write annotation %s: %w", FieldsAnnotation, err)
	}
	annotate(out, new(string(text)))
	return out, nil
}

// annotate sets FieldsAnnotation on an object whose metadata it copies, or takes it off.
func annotate(set conversion.Object, text *string) {
	named := conversion.Object{}
	if text != nil {
		named[FieldsAnnotation] = *text
	}
	metadata := conversion.Member(set, "metadata")
	all := conversion.Object{}
	if annotations := conversion.WithMembers(conversion.Member(metadata, "annotations"), named, FieldsAnnotation); len(annotations) > 0 {
		all["annotations"] = annotations
	}
	set["metadata"] = conversion.WithMembers(metadata, all, "annotations")
}
