package install

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Any file may be given as a patch. Each patch that is read names its object, and reads the same again.
func FuzzPatches(f *testing.F) {
	f.Add([]byte("kind: Deployment\nmetadata: {name: cloneset-manager}\nspec: {replicas: 1}\n---\n---\n{kind: Service, metadata: {name: a}}\n"))
	f.Add([]byte(`{"kind":"Deployment","metadata":{"name":1,"labels":[]}}{"kind":""}`))
	f.Add([]byte("- a"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		patches, err := parsePatches(text)
		if err != nil {
			return
		}
		for _, patch := range patches {
			object := target(patch)
			assert.NotEmpty(t, object.GetKind())
			assert.NotEmpty(t, object.GetName())
			again, err := parsePatches([]byte(patch))
			require.NoError(t, err)
			assert.Equal(t, []string{patch}, again)
		}
	})
}
