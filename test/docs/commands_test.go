package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What pages tell to make exists. Commands of kubectl and YAML are run by the end-to-end suites of the features, those of
// flotilla by module kustomize.
func TestPagesTellToMakeWhatExists(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	command := regexp.MustCompile("(?m)^    make ([a-z][a-z0-9-]*)|`make ([a-z][a-z0-9-]*)")
	made := 0
	for name := range pages(t) {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		require.NoError(t, err)
		for _, found := range command.FindAllStringSubmatch(string(text), -1) {
			made++
			target := found[1] + found[2]
			family, _, _ := strings.Cut(target, "-")
			rule := regexp.MustCompile(`(?m)^(\$\(MODULES\S+ )?(` + target + `|` + family + `-%):`)
			assert.True(t, rule.Match(makefile), "%s: %s", name, found[0])
		}
	}
	assert.Greater(t, made, 30)
}
