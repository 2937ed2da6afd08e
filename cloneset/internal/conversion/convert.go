package conversion

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/flotilla-project/flotilla/cloneset/api/v1alpha1"
	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// object is decoded JSON.
type object = map[string]any

// Convert returns the JSON of a CloneSet in the wanted apiVersion. What means the same in both versions is
// carried over as it was written, the templates above all: "cpu: 0.5" stays, and so does a false that a
// user wrote down. Only labels, annotations and the two strategies go through the types.
func Convert(raw []byte, apiVersion string) ([]byte, error) {
	var src object
	if err := utiljson.Unmarshal(raw, &src); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	from, _ := src["apiVersion"].(string)
	if from == apiVersion {
		return raw, nil
	}
	typed, err := convertTyped(src, from, apiVersion)
	if err != nil {
		return nil, err
	}
	out := maps.Clone(src)
	out["apiVersion"] = apiVersion
	out["metadata"] = with(member(src, "metadata"), member(typed, "metadata"), "labels", "annotations")
	out["spec"] = with(member(src, "spec"), member(typed, "spec"), "scaleStrategy", "updateStrategy")
	carry(src, out)
	return json.Marshal(out)
}

// convertTyped converts what goes through the types.
func convertTyped(src object, from, to string) (object, error) {
	part := maps.Clone(src)
	part["spec"] = with(nil, member(src, "spec"), "scaleStrategy", "updateStrategy")
	delete(part, "status")
	switch {
	case from == v1alpha1.GroupVersion.String() && to == v1beta1.GroupVersion.String():
		return through(part, ToHub)
	case from == v1beta1.GroupVersion.String() && to == v1alpha1.GroupVersion.String():
		return through(part, FromHub)
	}
	return nil, fmt.Errorf("unsupported version: %s to %s", path.Base(from), path.Base(to))
}

func through[S, D any](src object, convert func(*S, *D) error) (object, error) {
	var from S
	var to D
	var out object
	raw, err := json.Marshal(src)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	if err := utiljson.Unmarshal(raw, &from); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	if err := convert(&from, &to); err != nil {
		return nil, err
	}
	if raw, err = json.Marshal(to); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return out, utiljson.Unmarshal(raw, &out)
}

// carry copies members of the strategies as they were written, because the types leave out what is zero.
// Claim reuse, whose defaults are opposite, is written out always.
func carry(src, dst object) {
	scale := with(member(dst, "spec", "scaleStrategy"), member(src, "spec", "scaleStrategy"), "podsToDelete", "maxUnavailable")
	reuse := "enablePVCReuse"
	if dst["apiVersion"] == v1alpha1.GroupVersion.String() {
		reuse = "disablePVCReuse"
	}
	scale[reuse] = scale[reuse] == true
	member(dst, "spec")["scaleStrategy"] = scale

	from, to := rollingUpdate(src), rollingUpdate(dst)
	if to == nil {
		return
	}
	maps.Copy(to, with(nil, from, "partition", "maxUnavailable", "maxSurge", "paused", "priorityStrategy", "scatterStrategy"))
	if inPlace := member(to, "inPlaceUpdateStrategy"); inPlace != nil {
		maps.Copy(inPlace, with(nil, member(from, "inPlaceUpdateStrategy"), "gracePeriodSeconds"))
	}
}

// rollingUpdate is what holds the numbers of an update in the version of the object, or nil.
func rollingUpdate(set object) object {
	if set["apiVersion"] == v1alpha1.GroupVersion.String() {
		return member(set, "spec", "updateStrategy")
	}
	return member(set, "spec", "updateStrategy", "rollingUpdate")
}

// with is a copy of an object in which the named members are those of another one, or absent as there.
func with(base, other object, names ...string) object {
	out := object{}
	maps.Copy(out, base)
	for _, name := range names {
		delete(out, name)
		if value, ok := other[name]; ok {
			out[name] = value
		}
	}
	return out
}

// member is the object at the end of a path, or nil.
func member(from object, names ...string) object {
	for _, name := range names {
		from, _ = from[name].(object)
	}
	return from
}
