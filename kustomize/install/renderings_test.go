package install_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/install"
)

// What a caller changes in its objects is not seen by the next one, and each setting has its own objects.
func TestManifestsAreOnesOwn(t *testing.T) {
	features, err := catalog.Select("cloneset")
	require.NoError(t, err)
	first, err := install.Manifests(features[0], install.Settings{})
	require.NoError(t, err)
	want, err := first[0].MarshalJSON()
	require.NoError(t, err)

	first[0].SetName("other")
	first[0].SetLabels(nil)

	second, err := install.Manifests(features[0], install.Settings{})
	require.NoError(t, err)
	got, err := second[0].MarshalJSON()
	require.NoError(t, err)
	assert.JSONEq(t, string(want), string(got))
	other, err := install.Manifests(features[0], install.Settings{Registry: "registry.example"})
	require.NoError(t, err)
	assert.NotEqual(t, second, other)
}

func BenchmarkManifests(b *testing.B) {
	features, err := catalog.Select("jobs")
	require.NoError(b, err)
	for b.Loop() {
		if _, err := install.Manifests(features[0], install.Settings{}); err != nil {
			b.Fatal(err)
		}
	}
}
