package fuzz

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// Typed runs a target of a function that reads objects of a Go type, such as pods with annotations that any client can write.
// The check gets an object before and after the edits. JSON that is none of the type is left out.
func Typed[T any](f *testing.F, crd CRD, check func(t *testing.T, before, after *T), seeds ...[]byte) {
	f.Helper()
	seeds = crd.inVersions(f, nil, seeds)
	for _, raw := range seeds {
		require.NoError(f, json.Unmarshal(raw, new(T)), "a seed is none of the type")
	}
	add(f, seeds)
	f.Fuzz(func(t *testing.T, raw, script []byte) {
		object, ok := decode(raw)
		if !ok {
			return
		}
		before, after := new(T), new(T)
		edited, err := json.Marshal(edit(object, crd.schema(object), script))
		if err != nil || json.Unmarshal(raw, before) != nil || json.Unmarshal(edited, after) != nil {
			return
		}
		check(t, before, after)
	})
}
