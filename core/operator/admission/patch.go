package admission

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
)

// newPatch returns the operations that apply the difference between two objects to the bytes sent.
//
// Both objects were converted in the same way from the hub to the version sent, so that whatever the conversion adds or
// loses cancels out: fields that this program does not know, zero values that Go encodes and people do not write, and
// marks that a conversion leaves. Only real changes are applied to the bytes.
//
// Only differences are decoded, level by level: most of a pod is unchanged.
func newPatch(sent, before, after []byte) ([]jsonpatch.Operation, error) {
	var p patch
	p.transplant("", sent, before, after)
	if p.err != nil {
		return nil, fmt.Errorf("compare the object with its defaults: %w", p.err)
	}
	return p.operations, nil
}

// patch collects the operations that make the change from before to after on document.
type patch struct {
	operations []jsonpatch.Operation
	err        error
}

func (p *patch) add(operation, path string, value any) {
	p.operations = append(p.operations, jsonpatch.NewOperation(operation, path, value))
}

func (p *patch) transplant(path string, document, before, after json.RawMessage) {
	switch {
	case equal(before, after):
	case kindOf(document) == '{' && kindOf(before) == '{' && kindOf(after) == '{':
		p.transplantObject(path, document, before, after)
	case kindOf(document) == '[' && kindOf(before) == '[' && kindOf(after) == '[':
		p.transplantList(path, document, before, after)
	default:
		p.add("replace", path, after)
	}
}

func (p *patch) transplantObject(path string, document, before, after json.RawMessage) {
	here, was, is := members[map[string]json.RawMessage](p, document, before, after)
	for _, key := range slices.Sorted(maps.Keys(is)) {
		at := path + "/" + escape(key)
		switch present, exists := here[key]; {
		case exists && !isNull(present):
			p.transplant(at, present, was[key], is[key])
		case !equal(was[key], is[key]):
			p.add("add", at, is[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(was)) {
		_, exists := here[key]
		if _, stays := is[key]; !stays && exists {
			p.add("remove", path+"/"+escape(key), nil)
		}
	}
}

// transplantList compares the elements only if their number is the same: otherwise indexes mean nothing.
func (p *patch) transplantList(path string, document, before, after json.RawMessage) {
	here, was, is := members[[]json.RawMessage](p, document, before, after)
	if len(here) != len(was) || len(was) != len(is) {
		p.add("replace", path, after)
		return
	}
	for i := range is {
		p.transplant(path+"/"+strconv.Itoa(i), here[i], was[i], is[i])
	}
}

// members decodes one level of three values; the first one is mostly equal to the second.
func members[T any](p *patch, document, before, after json.RawMessage) (here, was, is T) {
	was, is = level[T](p, before), level[T](p, after)
	if bytes.Equal(document, before) {
		return was, was, is
	}
	return level[T](p, document), was, is
}

func level[T any](p *patch, value json.RawMessage) (decoded T) {
	if err := json.Unmarshal(value, &decoded); err != nil && p.err == nil {
		p.err = err
	}
	return decoded
}

// equal reports whether two values that Go encoded are the same. Null equals absent.
func equal(a, b json.RawMessage) bool {
	return bytes.Equal(a, b) || isNull(a) && isNull(b)
}

func isNull(value json.RawMessage) bool { return kindOf(value) == 0 || kindOf(value) == 'n' }

// kindOf returns the first byte of a JSON value: '{' of an object, '[' of a list, 'n' of null, 0 where there is none.
func kindOf(value json.RawMessage) byte {
	value = bytes.TrimLeft(value, " \t\r\n")
	if len(value) == 0 {
		return 0
	}
	return value[0]
}

// escape writes a key as a token of a JSON pointer.
func escape(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}
