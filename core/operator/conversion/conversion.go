package conversion

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Object is decoded JSON.
type Object = map[string]any

// Versions are the two versions of a kind with a conversion that is written for JSON.
type Versions struct {
	// Hub and Spoke are apiVersions, such as apps.kruise.io/v1beta1.
	Hub, Spoke string
	// ToHub and FromHub convert a decoded object without changing the argument. The apiVersion is set afterwards.
	ToHub, FromHub func(Object) (Object, error)
}

// Convert returns the JSON of an object in the wanted apiVersion. An object that has it already is returned byte by
// byte.
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

// ViaTypes converts decoded JSON with a conversion of the types S and D.
func ViaTypes[S, D any](src Object, convert func(*S, *D) error) (Object, error) {
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

// ViaJSON converts types with a conversion of decoded JSON: the opposite of ViaTypes, for kinds with a conversion that is
// written for JSON.
func ViaJSON(src, dst any, convert func(Object) (Object, error)) error {
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

// recode encodes one value as JSON and decodes it into another.
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

// WithMembers returns a copy of base with the named members of other, or without them if other lacks them. Both may be
// nil.
func WithMembers(base, other Object, names ...string) Object {
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

// Member returns the object at a path of member names, nil if there is none.
func Member(from Object, names ...string) Object {
	for _, name := range names {
		from, _ = from[name].(Object)
	}
	return from
}
