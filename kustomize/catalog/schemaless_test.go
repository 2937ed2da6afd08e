package catalog_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/render"
)

func TestAFeatureWithoutSchemasRendersAllElse(t *testing.T) {
	features, err := catalog.Select("budget")
	require.NoError(t, err)
	light, err := features[0].WithoutSchemas()
	require.NoError(t, err)

	build := func(feature catalog.Feature) string {
		tree, err := catalog.Tree(feature)
		require.NoError(t, err)
		var renderer render.Renderer
		manifests, err := renderer.Build(tree, "budget/config/default")
		require.NoError(t, err)
		return string(manifests)
	}
	assert.Contains(t, build(features[0]), "openAPIV3Schema")
	lighter := build(light)
	assert.NotContains(t, lighter, "openAPIV3Schema")
	assert.Contains(t, lighter, "name: podunavailablebudgets.policy.kruise.io")
	assert.Contains(t, lighter, "kind: Deployment")
}
