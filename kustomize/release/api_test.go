package release_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/kustomize/release"
)

const fleetCode = "package fleet\n\n// Sail sails.\nfunc Sail() {}\n\n// Moor moors.\nfunc Moor() {}\n"

// givenARelease is a workspace whose module fleet/api was released with two functions.
func givenARelease(t *testing.T) tree {
	t.Helper()
	w := given(t)
	w.write("fleet/api/fleet.go", fleetCode)
	w.write("fleet/api/internal/hull/hull.go", "package hull\n\n// Paint paints.\nfunc Paint() {}\n")
	w.write("fleet/api/CHANGELOG.md", "# Changelog\n\n## Unreleased\n\n## v0.1.0 (2026-01-01)\n\n- **Breaking:** All is new.\n")
	w.commit()
	w.git("tag", "fleet/api/v0.1.0")
	return w
}

func TestIncompatibleChangesAreAnnounced(t *testing.T) {
	const (
		removed = "package fleet\n\n// Sail sails.\nfunc Sail() {}\n"
		added   = fleetCode + "\n// Drift drifts.\nfunc Drift() {}\n"
		changed = "package fleet\n\n// Sail sails.\nfunc Sail(knots int) {}\n\n// Moor moors.\nfunc Moor() {}\n"
	)
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"nothing":                 {nil, nil},
		"a new function":          {map[string]string{"fleet.go": added}, nil},
		"an internal one is gone": {map[string]string{"internal/hull/hull.go": "package hull\n"}, nil},
		"one is gone":             {map[string]string{"fleet.go": removed}, []string{"Moor: removed"}},
		"one wants more":          {map[string]string{"fleet.go": changed}, []string{"Sail: changed from func() to func(int)"}},
		"one is gone, with another note": {
			map[string]string{"fleet.go": removed, ".changes/fix-moor.md": "Moor is gone.\n"}, []string{"Moor: removed"},
		},
		"one is gone, and that is announced": {map[string]string{"fleet.go": removed, ".changes/breaking-moor.md": "Moor is gone.\n"}, nil},
		"one is gone, and the release is prepared": {map[string]string{
			"fleet.go":     removed,
			"CHANGELOG.md": "# Changelog\n\n## Unreleased\n\n## v0.2.0 (2026-02-01)\n\n- **Breaking:** Moor is gone.\n\n## v0.1.0 (2026-01-01)\n\n- All.\n",
		}, nil},
		"one is gone, and the version that is prepared does not tell": {map[string]string{
			"fleet.go":     removed,
			"CHANGELOG.md": "# Changelog\n\n## Unreleased\n\n## v0.1.1 (2026-02-01)\n\n- Faster.\n\n## v0.1.0 (2026-01-01)\n\n- **Breaking:** All is new.\n",
		}, []string{"Moor: removed"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := givenARelease(t)
			for file, text := range c.files {
				w.write("fleet/api/"+file, text)
			}
			if len(c.files) > 0 {
				w.commit()
			}
			found, err := release.Unannounced(t.Context(), w.root)
			require.NoError(t, err)
			if c.want == nil {
				assert.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			assert.Equal(t, "fleet/api", found[0].Module)
			assert.Equal(t, "v0.1.0", found[0].Version)
			assert.Equal(t, c.want, found[0].Changes)
			assert.NotContains(t, w.worktrees(), "tree", "the tree of the release is gone")
		})
	}
}

func TestAModuleThatDoesNotCompileIsNotCompared(t *testing.T) {
	w := givenARelease(t)
	w.write("fleet/api/fleet.go", "package fleet\n\nfunc Sail() { return 1 }\n")
	w.commit()
	_, err := release.Unannounced(t.Context(), w.root)
	assert.ErrorContains(t, err, "compare fleet/api with v0.1.0: load package")
}
