package cloneset

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The pages that all workloads share have examples of CloneSets.
func TestExamplesOfThePages(t *testing.T) {
	t.Parallel()
	namespace := world.Namespace(t)
	world.NoPods(t, namespace)
	for _, page := range []string{
		"features/cloneset", "concepts/in-place-updates", "guides/restart-containers", "guides/resize-in-place", "reference/lifecycle-hooks",
	} {
		world.Examples(t, namespace, "../../../docs/"+page+".md", "clone")
	}
	out, err := world.ApplyExample(t, namespace, "clone", "# patch web\nspec:\n  misspelt: true\n")
	require.NoError(t, err, out)
	assert.Contains(t, out, `Warning: unknown field "spec.misspelt"`, "a patch with a mistake is noticed")
}
