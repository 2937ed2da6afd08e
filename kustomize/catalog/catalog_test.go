package catalog_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/kustomize/catalog"
)

// A module with manifests that is not in the catalog could not be installed by the command.
func TestEveryFeatureOfTheRepositoryIsThere(t *testing.T) {
	configs, err := filepath.Glob(filepath.Join("..", "..", "*", "config", "default"))
	require.NoError(t, err)
	var want []string
	for _, config := range configs {
		want = append(want, filepath.Base(filepath.Dir(filepath.Dir(config))))
	}

	features, err := catalog.Features()

	require.NoError(t, err)
	var got []string
	for _, feature := range features {
		got = append(got, feature.Name)
		assert.Contains(t, feature.Images, "flotilla/"+feature.Name+"-manager")
		assert.Regexp(t, "^v[0-9]", feature.Version)
		assert.Contains(t, feature.Components, "certmanager", feature.Name)
	}
	assert.Equal(t, want, got)
}

func TestGatesAreFoundInComponents(t *testing.T) {
	features, err := catalog.Select("jobs")
	require.NoError(t, err)
	require.Len(t, features, 1)

	component, found := features[0].Gate("SidecarTerminator")
	assert.True(t, found)
	assert.Equal(t, "sidecarterminator", component)
	_, found = features[0].Gate("Nothing")
	assert.False(t, found)
}

func TestSelect(t *testing.T) {
	all, err := catalog.Features()
	require.NoError(t, err)
	every, err := catalog.Select("all", "jobs")
	require.NoError(t, err)
	assert.Len(t, every, len(all))

	two, err := catalog.Select("jobs", "cloneset", "jobs")
	require.NoError(t, err)
	assert.Equal(t, []string{"cloneset", "jobs"}, []string{two[0].Name, two[1].Name})
	assert.Len(t, two, 2)

	_, err = catalog.Select("clonesets")
	assert.ErrorContains(t, err, `unknown feature "clonesets": use budget, cloneset`)
}
