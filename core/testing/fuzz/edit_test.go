package fuzz

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const widgets = `
spec:
  group: example.com
  names: {kind: Widget}
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, minimum: 0}
              colour: {type: string, enum: [red, green]}
              most: {anyOf: [{type: integer}, {type: string}], x-kubernetes-int-or-string: true}
              parts: {type: array, items: {type: object, properties: {name: {type: string}, on: {type: boolean}}}}
              labels: {type: object, additionalProperties: {type: string}}
`

func TestScriptsEditAllThatTheSchemaHas(t *testing.T) {
	file := filepath.Join(t.TempDir(), "crd.yaml")
	require.NoError(t, os.WriteFile(file, []byte(widgets), 0o600))
	crd := ReadCRD(t, file)
	stored := Object{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": Object{"name": "web"}, "spec": Object{"size": int64(1)}}
	require.True(t, crd.Accepts(stored))
	random, seen, accepted := rand.New(rand.NewPCG(1, 2)), map[string]bool{}, 0
	const scripts = 2000
	for range scripts {
		script := make([]byte, 32)
		for i := range script {
			script[i] = byte(random.Uint32())
		}
		edited := edit(stored, crd.schema(stored), script)
		if crd.Accepts(edited) {
			accepted++
		}
		spec, _ := edited["spec"].(Object)
		for name := range spec {
			seen[name] = true
		}
		if parts, _ := spec["parts"].([]any); len(parts) > 1 {
			seen["several parts"] = true
		}
	}
	for _, name := range []string{"size", "colour", "most", "parts", "labels", "several parts"} {
		assert.True(t, seen[name], name)
	}
	assert.Greater(t, accepted, scripts/10)
	assert.Less(t, accepted, scripts, "the schema refuses negative sizes")
	assert.Equal(t, Object{"size": int64(1)}, stored["spec"], "the object itself is changed")
}

func TestJSONInTextsIsEdited(t *testing.T) {
	object := Object{"annotations": Object{"state": `{"revision":"a","containers":["main"]}`}}
	seen := map[any]bool{}
	for i := range 256 {
		changed, _ := edit(object, nil, []byte{1, 0, 1, 1, 0, 1, 1, 1, 0, byte(i), 0})["annotations"].(Object)
		seen[changed["state"]] = true
	}
	assert.True(t, seen[`{"revision":"a"}`], "%v", seen)
	assert.True(t, seen[`{"containers":["main"]}`], "%v", seen)
}
