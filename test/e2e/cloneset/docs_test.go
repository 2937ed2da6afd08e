package cloneset

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestExamplesOfThePage(t *testing.T) {
	t.Parallel()
	namespace := world.Namespace(t)
	world.NoPods(t, namespace)
	world.Examples(t, namespace, "../../../docs/features/cloneset.md", "clone")
	out, err := world.ApplyExample(t, namespace, "clone", "# patch web\nspec:\n  misspelt: true\n")
	require.NoError(t, err, out)
	assert.Contains(t, out, `Warning: unknown field "spec.misspelt"`, "a patch with a mistake is noticed")
}
