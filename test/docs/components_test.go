package docs

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Users choose components from the page, and those for a runtime from the requirements.
func TestPagesHaveTheComponents(t *testing.T) {
	page := text(t, "docs/install/components.md") + text(t, "docs/install/requirements.md")
	found := 0
	for _, pattern := range []string{"kustomize/components/*", "*/config/*"} {
		files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern), "kustomization.yaml"))
		require.NoError(t, err)
		for _, file := range files {
			folder, err := filepath.Rel(root, filepath.Dir(file))
			require.NoError(t, err)
			name := filepath.ToSlash(folder)
			if !strings.Contains(text(t, name+"/kustomization.yaml"), "\nkind: Component\n") {
				continue
			}
			found++
			feature, component, _ := strings.Cut(name, "/config/")
			every := "`FEATURE/config/" + component + "`"
			runtime := feature == "daemon" && strings.Contains(page, "`"+component+"`")
			assert.True(t, strings.Contains(page, "`"+name+"`") || strings.Contains(page, every) || runtime, "no page has component %s", name)
		}
	}
	assert.Greater(t, found, 20)
}
