package fuzz

import (
	"cmp"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Typed runs a target of a function that reads objects of a Go type, such as pods with annotations that any client can write.
// The check gets an object before and after the edits. JSON that is none of the type is left out.
func Typed[T any](f *testing.F, crd CRD, check func(t *testing.T, before, after *T), seeds ...[]byte) {
	f.Helper()
	for _, raw := range seeds {
		require.NoError(f, json.Unmarshal(raw, new(T)), "a seed is none of the type")
	}
	Objects(f, []CRD{crd}, func(t *testing.T, stored, object Object) {
		t.Helper()
		before, after := new(T), new(T)
		if json.Unmarshal(encode(t, stored), before) == nil && json.Unmarshal(encode(t, object), after) == nil {
			check(t, before, after)
		}
	}, seeds...)
}

// Objects runs a target of a function that reads objects of the kinds as the API server decodes them. The check gets an object
// before and after the edits, also one that no schema accepts.
func Objects(f *testing.F, crds []CRD, check func(t *testing.T, before, after Object), seeds ...[]byte) {
	f.Helper()
	for _, crd := range crds {
		add(f, crd.inVersions(f, nil, seeds))
	}
	f.Fuzz(func(t *testing.T, raw, script []byte) {
		object, ok := decode(raw)
		if !ok {
			return
		}
		var schema *spec.Schema
		for _, crd := range crds {
			schema = cmp.Or(schema, crd.schema(object))
		}
		check(t, object, edit(object, schema, script))
	})
}
