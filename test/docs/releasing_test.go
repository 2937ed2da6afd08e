package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
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

// A signature is of the workflow on one branch: the page for users names that identity, and the workflow signs for no other one, and
// only what was verified and tested.
func TestTheIdentityOfSignatures(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "install", "install.md"))
	require.NoError(t, err)
	var workflow struct {
		Jobs map[string]struct {
			If    string
			Needs []string
			Uses  string
		}
	}
	text, err := os.ReadFile(filepath.Join(root, ".github", "workflows", "release.yaml"))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &workflow))
	release := workflow.Jobs["release"]
	ref := regexp.MustCompile(`^github\.ref == '(.*)'$`).FindStringSubmatch(release.If)
	require.NotNil(t, ref, release.If)
	assert.Contains(t, string(page), "--certificate-identity https://github.com/flotilla-project/flotilla/.github/workflows/release.yaml@"+ref[1]+"\n")
	assert.NotContains(t, string(page), "--certificate-identity-regexp")
	for _, needed := range []string{"verify", "test"} {
		assert.Contains(t, release.Needs, needed)
		called, err := os.ReadFile(filepath.Join(root, workflow.Jobs[needed].Uses))
		require.NoError(t, err)
		assert.Contains(t, string(called), "\n  workflow_call:")
	}
}
