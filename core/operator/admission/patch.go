package admission

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// patch returns the operations that bring what changed between two hub objects into the bytes sent.
//
// Both hub objects go the same way back into the version sent, so that whatever that way adds or loses
// cancels out: fields that this program does not know, zero values that Go writes and people do not, and
// marks that a conversion leaves. Only real changes are left to be applied to the bytes.
func (v Version[H]) patch(sent []byte, before, after H) ([]jsonpatch.Operation, error) {
	var documents [3]any
	for i, encode := range []func() ([]byte, error){
		func() ([]byte, error) { return sent, nil },
		func() ([]byte, error) { return v.encode(before) },
		func() ([]byte, error) { return v.encode(after) },
	} {
		raw, err := encode()
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", v.name, err)
		}
		if err := utiljson.Unmarshal(raw, &documents[i]); err != nil {
			return nil, fmt.Errorf("compare %s: %w", v.name, err)
		}
	}
	return transplant("", documents[0], documents[1], documents[2]), nil
}

// transplant lists the operations that make the change from before to after on document.
func transplant(path string, document, before, after any) []jsonpatch.Operation {
	if reflect.DeepEqual(before, after) {
		return nil
	}
	if operations, ok := transplantObject(path, document, before, after); ok {
		return operations
	}
	if operations, ok := transplantList(path, document, before, after); ok {
		return operations
	}
	return []jsonpatch.Operation{jsonpatch.NewOperation("replace", path, after)}
}

func transplantObject(path string, document, before, after any) ([]jsonpatch.Operation, bool) {
	here, ok := document.(map[string]any)
	was, wasObject := before.(map[string]any)
	is, isObject := after.(map[string]any)
	if !ok || !wasObject || !isObject {
		return nil, false
	}

	var operations []jsonpatch.Operation
	for _, key := range slices.Sorted(maps.Keys(is)) {
		at := path + "/" + escape(key)
		switch present, exists := here[key]; {
		case exists && present != nil:
			operations = append(operations, transplant(at, present, was[key], is[key])...)
		case !reflect.DeepEqual(was[key], is[key]):
			operations = append(operations, jsonpatch.NewOperation("add", at, is[key]))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(was)) {
		_, exists := here[key]
		if _, stays := is[key]; !stays && exists {
			operations = append(operations, jsonpatch.NewOperation("remove", path+"/"+escape(key), nil))
		}
	}
	return operations, true
}

// transplantList goes into the elements only where no element came or went: otherwise positions mean nothing.
func transplantList(path string, document, before, after any) ([]jsonpatch.Operation, bool) {
	here, ok := document.([]any)
	was, wasList := before.([]any)
	is, isList := after.([]any)
	if !ok || !wasList || !isList || len(here) != len(was) || len(was) != len(is) {
		return nil, false
	}
	var operations []jsonpatch.Operation
	for i := range is {
		operations = append(operations, transplant(path+"/"+strconv.Itoa(i), here[i], was[i], is[i])...)
	}
	return operations, true
}

// escape writes a key as a token of a JSON pointer.
func escape(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}
