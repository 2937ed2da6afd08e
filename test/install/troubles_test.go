package install

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The page of problems that users of OpenKruise have reported names the tests that prove the behaviour here.
func TestEveryTroubleNamesATestThatExists(t *testing.T) {
	const root = "../.."
	page, err := os.ReadFile(filepath.Join(root, "docs", "contributing", "troubles.md"))
	require.NoError(t, err)
	reference := regexp.MustCompile("`([^`\\s:]+_test\\.go):(Test\\w+)`")
	rest := reference.ReplaceAllString(string(page), "")
	assert.Zero(t, strings.Count(rest, "_test.go"), "files without a test")

	named := reference.FindAllStringSubmatch(string(page), -1)
	require.NotEmpty(t, named)
	var missing []string
	for _, n := range named {
		file, test := n[1], n[2]
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		if err != nil || !strings.Contains(string(text), "\nfunc "+test+"(t *testing.T) {") {
			missing = append(missing, file+":"+test)
		}
	}
	assert.Empty(t, missing)
}
