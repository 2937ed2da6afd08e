package fuzz

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// Object is decoded JSON.
type Object = map[string]any

// Convert returns the JSON of an object in an apiVersion.
type Convert func(raw []byte, apiVersion string) ([]byte, error)

// scripts is how many scripts each object is seeded with, and edits the length of the shortest: about two edits.
const scripts, edits = 4, 12

// Read returns the JSON of all documents in YAML files. The pattern is one of filepath.Glob, and has to match a file.
func Read(tb testing.TB, pattern string) [][]byte {
	tb.Helper()
	files, err := filepath.Glob(pattern)
	require.NoError(tb, err)
	require.NotEmpty(tb, files, "no file matches %s", pattern)
	var all [][]byte
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(tb, err)
		all = append(all, Documents(tb, string(text))...)
	}
	return all
}

// Documents returns the JSON of the documents of a YAML text.
func Documents(tb testing.TB, text string) [][]byte {
	tb.Helper()
	var all [][]byte
	for decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(text)), len(text)+1); ; {
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(tb, err)
		if len(raw) > 0 && !bytes.Equal(raw, []byte("null")) {
			all = append(all, raw)
		}
	}
}

// inVersions returns the objects of the CRD among the seeds, each in every version. An empty CRD has them all as they are.
func (c CRD) inVersions(f *testing.F, convert Convert, seeds [][]byte) (all [][]byte) {
	f.Helper()
	for _, raw := range seeds {
		object, ok := decode(raw)
		switch {
		case !ok, c.Kind != "" && object["kind"] != c.Kind:
		case convert == nil:
			all = append(all, raw)
		default:
			for _, version := range c.versions() {
				converted, err := convert(raw, version)
				require.NoError(f, err)
				all = append(all, converted)
			}
		}
	}
	require.True(f, slices.ContainsFunc(all, func(raw []byte) bool {
		object, _ := decode(raw)
		return c.Kind == "" || c.Accepts(object)
	}), "the schema accepts no seed of kind %q", c.Kind)
	return all
}

// add adds the objects, each as it is and with scripts that are the same in every run.
func add(f *testing.F, seeds [][]byte) {
	f.Helper()
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same in every run
	for _, raw := range seeds {
		f.Add(raw, []byte(nil))
		for n := range scripts {
			script := make([]byte, (n+1)*edits)
			for i := range script {
				script[i] = byte(random.Uint32())
			}
			f.Add(raw, script)
		}
	}
}

// decode returns the object, and whether it is one.
func decode(raw []byte) (Object, bool) {
	var object Object
	err := utiljson.Unmarshal(raw, &object)
	return object, err == nil && object != nil
}

// encode returns the JSON of an object.
func encode(tb testing.TB, object Object) []byte {
	tb.Helper()
	raw, err := json.Marshal(object)
	require.NoError(tb, err)
	return raw
}
