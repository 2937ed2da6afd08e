package diff

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
)

// firstDifference is the path of the first field in which a and b differ in meaning, empty when they
// do not: nil and empty are equal, and so are quantities of the same size.
func firstDifference(a, b any, path string) string {
	if equality.Semantic.DeepEqual(a, b) {
		return ""
	}
	return descend(reflect.ValueOf(a), reflect.ValueOf(b), path)
}

func descend(a, b reflect.Value, path string) string {
	switch a.Kind() {
	case reflect.Pointer:
		if !a.IsNil() && !b.IsNil() {
			return descend(a.Elem(), b.Elem(), path)
		}
	case reflect.Struct:
		return differingField(a, b, path)
	case reflect.Slice:
		if a.Len() != b.Len() {
			return path
		}
		for i := range a.Len() {
			if at := firstDifference(a.Index(i).Interface(), b.Index(i).Interface(), fmt.Sprintf("%s[%d]", path, i)); at != "" {
				return at
			}
		}
	case reflect.Map:
		return differingKey(a, b, path)
	default: // a value without parts
	}
	return path
}

func differingField(a, b reflect.Value, path string) string {
	for i := range a.NumField() {
		field := a.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		at := path
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
			at += "." + name
		}
		if at = firstDifference(a.Field(i).Interface(), b.Field(i).Interface(), at); at != "" {
			return at
		}
	}
	return path
}

func differingKey(a, b reflect.Value, path string) string {
	var differing []string
	for _, key := range append(a.MapKeys(), b.MapKeys()...) {
		left, right := a.MapIndex(key), b.MapIndex(key)
		if !left.IsValid() || !right.IsValid() || !equality.Semantic.DeepEqual(left.Interface(), right.Interface()) {
			differing = append(differing, fmt.Sprintf("%s[%v]", path, key.Interface()))
		}
	}
	if len(differing) == 0 {
		return path
	}
	return slices.Min(differing)
}
