package conversion

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/flotilla-project/flotilla/statefulset/api/v1alpha1"
	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// object is decoded JSON.
type object = map[string]any

// Convert returns the JSON of a StatefulSet in the wanted apiVersion. Every field that it carries over is
// as it was written: "cpu: 0.5" stays, and so does a false that a user wrote down.
func Convert(raw []byte, apiVersion string) ([]byte, error) {
	var src object
	if err := utiljson.Unmarshal(raw, &src); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	from, _ := src["apiVersion"].(string)
	if from == apiVersion {
		return raw, nil
	}
	convert, err := converter(from, apiVersion)
	if err != nil {
		return nil, err
	}
	dst, err := convert(src)
	if err != nil {
		return nil, err
	}
	dst["apiVersion"] = apiVersion
	return json.Marshal(dst)
}

func converter(from, to string) (func(object) (object, error), error) {
	switch {
	case from == v1alpha1.GroupVersion.String() && to == v1beta1.GroupVersion.String():
		return toHub, nil
	case from == v1beta1.GroupVersion.String() && to == v1alpha1.GroupVersion.String():
		return fromHub, nil
	}
	return nil, fmt.Errorf("unsupported version: %s to %s", path.Base(from), path.Base(to))
}

// ToHub fills an empty hub object from a v1alpha1 one.
func ToHub(src *v1alpha1.StatefulSet, dst *v1beta1.StatefulSet) error {
	return through(src, dst, toHub)
}

// FromHub fills an empty v1alpha1 object from the hub.
func FromHub(src *v1beta1.StatefulSet, dst *v1alpha1.StatefulSet) error {
	return through(src, dst, fromHub)
}

// through converts Go types by their JSON, so that there is one conversion.
func through(src, dst any, convert func(object) (object, error)) error {
	raw, err := json.Marshal(src)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	var tree object
	if err := utiljson.Unmarshal(raw, &tree); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	if tree, err = convert(tree); err != nil {
		return err
	}
	if raw, err = json.Marshal(tree); err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	return utiljson.Unmarshal(raw, dst)
}

// toHub puts the fields in FieldsAnnotation where the hub has them.
func toHub(src object) (object, error) {
	out := maps.Clone(src)
	text, ok := member(src, "metadata", "annotations")[FieldsAnnotation].(string)
	if !ok {
		return out, nil
	}
	kept, err := read(text)
	if err != nil {
		return out, nil //nolint:nilerr // admission has the word
	}
	annotate(out, nil)
	for _, part := range parts() {
		if fields := member(kept, part); len(fields) > 0 {
			whole := object{}
			maps.Copy(whole, member(src, part))
			maps.Copy(whole, fields)
			out[part] = whole
		}
	}
	return out, nil
}

// fromHub moves what v1alpha1 lacks into FieldsAnnotation.
func fromHub(src object) (object, error) {
	out, kept := maps.Clone(src), object{}
	for _, part := range parts() {
		rest, fields := split(member(src, part), fieldsOf(part))
		if len(fields) > 0 {
			out[part], kept[part] = rest, fields
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

// split parts an object into the named members and the rest.
func split(whole object, names []string) (rest, named object) {
	rest, named = maps.Clone(whole), object{}
	for _, name := range names {
		if value, ok := whole[name]; ok {
			named[name] = value
			delete(rest, name)
		}
	}
	return rest, named
}

// annotate sets FieldsAnnotation on an object whose metadata it copies, or takes it off.
func annotate(set object, text *string) {
	metadata, annotations := object{}, object{}
	maps.Copy(metadata, member(set, "metadata"))
	maps.Copy(annotations, member(metadata, "annotations"))
	delete(annotations, FieldsAnnotation)
	if text != nil {
		annotations[FieldsAnnotation] = *text
	}
	metadata["annotations"] = annotations
	if len(annotations) == 0 {
		delete(metadata, "annotations")
	}
	set["metadata"] = metadata
}

// member is the object at the end of a path, or nil.
func member(from object, names ...string) object {
	for _, name := range names {
		from, _ = from[name].(object)
	}
	return from
}
