package conversion

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// AcceptLossAnnotation set to "true" by a user allows an update through an older version to take away
// what that version cannot say.
const AcceptLossAnnotation = "apps.kruise.io/accept-v1alpha1-loss"

// Object is decoded JSON.
type Object = map[string]any

// Versions are the two versions of a kind whose conversion is written for JSON.
type Versions struct {
	// Hub and Spoke are apiVersions, such as apps.kruise.io/v1beta1.
	Hub, Spoke string
	// ToHub and FromHub convert a decoded object, without changing what they are given. Its apiVersion is set afterwards.
	ToHub, FromHub func(Object) (Object, error)
}

// Convert returns the JSON of an object in the wanted apiVersion. One that has it already comes back byte by byte.
func (v Versions) Convert(raw []byte, apiVersion string) ([]byte, error) {
	var src Object
	if err := utiljson.Unmarshal(raw, &src); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	from, _ := src["apiVersion"].(string)
	if from == apiVersion {
		return raw, nil
	}
	convert := v.ToHub
	switch {
	case from == v.Spoke && apiVersion == v.Hub:
	case from == v.Hub && apiVersion == v.Spoke:
		convert = v.FromHub
	default:
		return nil, fmt.Errorf("unsupported version: %s to %s", path.Base(from), path.Base(apiVersion))
	}
	converted, err := convert(src)
	if err != nil {
		return nil, err
	}
	converted["apiVersion"] = apiVersion
	return json.Marshal(converted)
}

// Through converts an object by way of the types S and D.
func Through[S, D any](src Object, convert func(*S, *D) error) (Object, error) {
	var from S
	var to D
	var out Object
	if err := recode(src, &from); err != nil {
		return nil, err
	}
	if err := convert(&from, &to); err != nil {
		return nil, err
	}
	return out, recode(to, &out)
}

// Typed converts types by way of their JSON: the opposite of Through, for kinds whose conversion is
// written for JSON.
func Typed(src, dst any, convert func(Object) (Object, error)) error {
	var tree Object
	if err := recode(src, &tree); err != nil {
		return err
	}
	converted, err := convert(tree)
	if err != nil {
		return err
	}
	return recode(converted, dst)
}

// recode reads what one value is as JSON into another.
func recode(from, to any) error {
	raw, err := json.Marshal(from)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	if err := utiljson.Unmarshal(raw, to); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	return nil
}

// With returns a copy of an object in which the named members are those of another one, or absent as there. Both may be
// nil.
func With(base, other Object, names ...string) Object {
	out := Object{}
	maps.Copy(out, base)
	for _, name := range names {
		delete(out, name)
		if value, ok := other[name]; ok {
			out[name] = value
		}
	}
	return out
}

// Member returns the object at the end of a path of names, nil where there is none.
func Member(from Object, names ...string) Object {
	for _, name := range names {
		from, _ = from[name].(Object)
	}
	return from
}

// Put writes the value as JSON into an annotation.
func Put(meta *metav1.ObjectMeta, annotation string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("write annotation %s: %w", annotation, err)
	}
	metav1.SetMetaDataAnnotation(meta, annotation, string(text))
	return nil
}

// Take removes an annotation that Put wrote and reads it into value, which stays as it is without one.
// The error says that it cannot be read; a conversion that fails for that would hide the object from
// every list.
func Take(meta *metav1.ObjectMeta, annotation string, value any) error {
	text, ok := meta.Annotations[annotation]
	if !ok {
		return nil
	}
	delete(meta.Annotations, annotation)
	if err := json.Unmarshal([]byte(text), value); err != nil {
		return fmt.Errorf("read annotation %s: %w", annotation, err)
	}
	return nil
}
