package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Tags are made in a work tree without changes, after the release was built in it: what the page and the workflow write there
// is no change.
func TestWhatAReleaseWritesIsNoChange(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "contributing", "releasing.md"))
	require.NoError(t, err)
	workflow, err := os.ReadFile(filepath.Join(root, ".github", "workflows", "release.yaml"))
	require.NoError(t, err)
	written := regexp.MustCompile(`\bTO=(\S+)|>([\w/]+)`).FindAllStringSubmatch(string(page)+string(workflow), -1)
	require.NotEmpty(t, written)
	if !exists(filepath.Join(root, ".git")) {
		t.Skip("this is no work tree of git")
	}
	for _, found := range written {
		ignored := exec.CommandContext(t.Context(), "git", "check-ignore", "--no-index", "--quiet", found[1]+found[2]+"/file")
		ignored.Dir = root
		assert.NoError(t, ignored.Run(), found[0])
	}
}
